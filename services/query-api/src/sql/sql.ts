// SQL of clients: what a statement may do, and how it runs.

export { registerSql } from './sql-route.ts';
export { SqlRunner } from './sql-runner.ts';
