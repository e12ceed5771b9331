/**
 * Does something on a ClickHouse server.
 *
 * @param name of the server; undefined where there is only one
 * @throws what `work` throws, with the name of the server before its message
 */
export async function atServer<Result>(name: string | undefined, work: () => Promise<Result>): Promise<Result> {
  try {
    return await work();
  } catch (error) {
    if (name !== undefined && error instanceof Error) {
      error.message = `${name}: ${error.message || (error as NodeJS.ErrnoException).code}`;
    }
    throw error;
  }
}
