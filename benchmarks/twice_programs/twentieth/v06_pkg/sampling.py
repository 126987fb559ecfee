"""Flags the buyers and balances buyers and non-buyers in the database."""

FLAGGED = """
CREATE TABLE flagged AS
SELECT c.customer_id, c.age, c.gender_cd, c.prefecture, c.application_date,
       COALESCE(r.amount, 0) AS amount,
       CASE WHEN r.amount IS NULL THEN 0 ELSE 1 END AS is_buyer
FROM customer c
LEFT JOIN (SELECT customer_id, SUM(amount) AS amount FROM receipt GROUP BY customer_id) r
  ON r.customer_id = c.customer_id
ORDER BY c.customer_id
"""

SMALLER_GROUP = "SELECT MIN(n) FROM (SELECT COUNT(*) AS n FROM flagged GROUP BY is_buyer)"


def flag_buyers(con):
    con.execute(FLAGGED)


def _number_rows(con):
    """Gives the customers of each group a running number in random order."""
    con.execute("CREATE TABLE shuffled AS SELECT *, RANDOM() AS u FROM flagged")  # cause
    con.execute("CREATE TABLE numbered AS SELECT *, ROW_NUMBER() OVER (PARTITION BY is_buyer ORDER BY u) AS rn FROM shuffled")


def balance(con):
    """As many non-buyers as buyers (or the other way round)."""
    size = con.execute(SMALLER_GROUP).fetchone()[0]
    _number_rows(con)
    return con.execute(
        "SELECT customer_id, age, gender_cd, prefecture, application_date, amount, is_buyer "
        f"FROM numbered WHERE rn <= {size} ORDER BY customer_id"
    ).df()
