"""TuPAQ's predictive queries: ``SELECT ... PREDICT(...) GIVEN ...`` over tables (Sparks et
al., "TuPAQ: An efficient planner for large-scale predictive analytic queries", section 1).

::

    clauses      from a query to its PREDICT ... GIVEN, and to plain SQL
    relations    names of tables to frames and files, for DuckDB
    catalogue    models of earlier queries: planned once, used again
    answering    `mlopt.sql`: plan each clause, then have DuckDB answer the rest
    commands     `mlopt sql` and `mlopt catalogue`

DuckDB does all that is not prediction: filters, joins, groups, files.
"""
