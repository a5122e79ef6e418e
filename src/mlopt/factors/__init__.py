"""Matrix factorization: factors of users and items from the ratings that are there.

State is blocks of factors, work is shelves of ratings: see `mlopt.factors.shelves`.
"""
