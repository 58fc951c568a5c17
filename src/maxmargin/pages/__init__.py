"""Pages of HTML and SVG from plain values: what ``report`` of an estimator writes."""
