/** ClickHouse refused or ended a query. `code` is ClickHouse's number of the error. */
export class ClickHouseException extends Error {
  override readonly name = 'ClickHouseException';
  readonly code: number;

  constructor(code: number, message: string) {
    super(message);
    this.code = code;
  }
}

/** The connection to ClickHouse could not be opened, or broke, or its response was not one of ClickHouse. */
export class ConnectionFailure extends Error {
  override readonly name = 'ConnectionFailure';
}

/** It is not known which users of the workspace are deleted: the server lacks deletions that others have. */
export class DeletionsUnknown extends ConnectionFailure {}

/** The query is longer than ClickHouse, or a proxy in front of it, takes: it fails each time. */
export class QueryTooLong extends Error {
  override readonly name = 'QueryTooLong';
}

/** Returns the exception in a text of ClickHouse, `Code: 60. DB::Exception: …`; `undefined` when there is none. */
export function exceptionIn(text: string): ClickHouseException | undefined {
  const match = /Code: (\d+)\. [^\n]*?Exception: (.*)/s.exec(text);
  return match ? new ClickHouseException(Number(match[1]), (match[2] as string).trim()) : undefined;
}
