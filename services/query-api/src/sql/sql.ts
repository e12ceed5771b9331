// SQL of clients: what a statement may do, and how it runs.

export { parseSqlRequest, SQL_FORMATS, type SqlRequest } from './sql-request.ts';
export { registerSql } from './sql-route.ts';
export { type SqlContext, SqlRunner } from './sql-runner.ts';
