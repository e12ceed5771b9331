// SQL of clients: what a statement may do, and how it runs.

export { parseSqlRequest, SQL_FORMATS, type SqlRequest } from './sql-request.ts';
export { registerSql, respondToSql } from './sql-route.ts';
export { SqlRunner } from './sql-runner.ts';
