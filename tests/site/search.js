// Asks the search of a built site, as a browser would: node search.js SITE QUERY...; prints JSON, pages by query.
const fs = require("fs"), path = require("path"), vm = require("vm");
const [site, ...queries] = process.argv.slice(2);
const element = { dataset: { content_root: "./" }, addEventListener() {}, appendChild() {}, classList: { add() {} } };
const document = {
  documentElement: element, readyState: "loading", addEventListener() {}, querySelector: () => element,
  getElementById: () => null, createElement: () => element, body: element,
};
const context = vm.createContext({ document, console, URLSearchParams, Set, Map, RegExp, setTimeout, localStorage: null });
context.window = context;
context.location = { search: "", href: "file:///", hash: "" };
context.SPHINX_HIGHLIGHT_ENABLED = false;
context._ = (text) => text;
context._ready = () => {};
const statics = ["documentation_options.js", "base-stemmer.js", "english-stemmer.js", "language_data.js", "searchtools.js"];
for (const name of statics) {
  const file = path.join(site, "_static", name);
  if (fs.existsSync(file)) vm.runInContext(fs.readFileSync(file, "utf8"), context, name);
}
vm.runInContext(fs.readFileSync(path.join(site, "searchindex.js"), "utf8"), context, "searchindex.js");
context.queries = queries;
const found = vm.runInContext(
  `JSON.stringify(Object.fromEntries(queries.map((query) => {
     const results = Search._performSearch(...Search._parseQuery(query));
     return [query, results.slice(-8).reverse().map((result) => [result[0] + (result[2] || ""), result[1], result[4]])];
   })))`, context);
process.stdout.write(found);
