"""Independent references: tiny problems by enumeration and general solvers, sharing no code with the library."""
