"""ML4all's declarative language: ``RUN ... ON ... HAVING ... USING ...`` (Appendix A).

::

    lexer, cursor, parser, items    from a text to statements; errors show the place
    ast, format                     what a query says, and back to its text
    files, data                     from files to labels and features
    asking, checks, fitting         what is asked for, whether it can work, who fits it
    model, store                    what is learnt, and its file
    run, printing                   a session of statements, in Python and on a terminal
"""
