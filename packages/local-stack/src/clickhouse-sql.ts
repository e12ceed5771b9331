import { createHash } from 'node:crypto';
import { once } from 'node:events';
import { readFile } from 'node:fs/promises';
import { type IncomingMessage, request } from 'node:http';
import { text } from 'node:stream/consumers';

const ACCOUNTS = new URL('../../../deploy/clickhouse/sql/accounts.xml', import.meta.url);
const VIEWS = new URL('../../../deploy/clickhouse/sql/views.sql', import.meta.url);

/** The hash of the password in the file, which is to be replaced. */
const PASSWORD_SHA256 = /(?<=<password_sha256_hex>)[0-9a-f]{64}(?=<)/;

/** For statements of clients. */
export interface SqlOptions {
  /** The database of the services. That of the views has its name and `_sql`. */
  readonly database: string;
  /** Of the account `sluice_sql`. */
  readonly password: string;
}

/** Returns `deploy/clickhouse/sql/accounts.xml` for a database, with a password. */
export async function sqlAccountsXml({ database, password }: SqlOptions): Promise<string> {
  const xml = await readFile(ACCOUNTS, 'utf8');
  const hash = createHash('sha256').update(password).digest('hex');
  return forDatabase(xml, database).replace(PASSWORD_SHA256, hash);
}

/** Creates the views of `deploy/clickhouse/sql/views.sql`, and replaces those of an older version. */
export async function createSqlViews(
  { url, user, password }: { readonly url: string; readonly user: string; readonly password: string },
  { database }: SqlOptions,
): Promise<void> {
  const statements = forDatabase(await readFile(VIEWS, 'utf8'), database).split(/;\n/);
  for (const statement of statements.filter((one) => one.trim() !== '')) {
    const headers = { 'X-ClickHouse-User': user, 'X-ClickHouse-Key': password };
    // Not fetch, whose open connection would delay the stop of the server by 5 s.
    const sent = request(url, { method: 'POST', headers, agent: false }).end(statement);
    const [response] = (await once(sent, 'response')) as [IncomingMessage];
    const body = await text(response);
    if (response.statusCode !== 200) throw new Error(`a view was not created: ${body.slice(0, 500)}`);
  }
}

/** The files are for the databases `sluice` and `sluice_sql`; their accounts keep their names. */
function forDatabase(content: string, database: string): string {
  return content
    .replaceAll(/\bsluice(?=(_sql)?\.[a-z*])/g, database)
    .replaceAll(/(?<=EXISTS )sluice(?=_sql;)/g, database)
    .replaceAll(/(?<=<\/?)sluice(?=>)/g, database);
}
