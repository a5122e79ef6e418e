"""ML4all's declarative language: ``RUN ... ON ... HAVING ... USING ...`` (Appendix A).

::

    lexer -> parser -> tree         what a query says; errors show the place
    data, fitting, model, store     what it takes to do it
    run                             a session of statements and their names
"""
