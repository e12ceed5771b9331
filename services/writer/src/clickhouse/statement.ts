/** A statement of the writer. Its name ends up in its query id, by which it can be found in ClickHouse's query log. */
export interface Statement {
  readonly name: string;
  readonly sql: string;
}
