-- Earliest qualifying procedure of each person.
CREATE OR REPLACE VIEW qualifying AS
SELECT po.procedure_occurrence_id,
       po.person_id,
       po.procedure_concept_id,
       po.procedure_date,
       po.visit_concept_id,
       po.total_paid,
       c.label
FROM procedure_occurrence po
JOIN codesets c
  ON c.concept_id = po.procedure_concept_id AND c.codeset_id = 22
WHERE po.visit_concept_id = 9201;

CREATE OR REPLACE TABLE first_event AS
SELECT person_id, procedure_concept_id, label, procedure_date AS start_date, total_paid
FROM (
    SELECT q.*,
           ROW_NUMBER() OVER (PARTITION BY q.person_id ORDER BY q.procedure_date) AS ordinal -- # cause
    FROM qualifying q
)
WHERE ordinal = 1;
