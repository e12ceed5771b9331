-- The number of the newest block is part of the name of a part, as query-api reads it (tables.ts).
SELECT max(greatest(toUInt64OrZero(splitByChar('_', _part)[3]), toUInt64OrZero(splitByChar('_', _part)[5]))) AS newest
FROM (SELECT _part, count() FROM events GROUP BY _part)
