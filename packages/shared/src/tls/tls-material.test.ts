import { rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { makeTempDir } from '@sluice/local-stack/testing/temp-dir';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { type Authority, type Certificate, createAuthority } from './testing/certificates.ts';
import { readTlsMaterial, TlsFilesError, tlsPaths } from './tls-material.ts';

const cleanup = new AsyncDisposableStack();
let folder: string;
let authority: Authority;
let own: Certificate;

beforeAll(async () => {
  folder = cleanup.use(await makeTempDir()).path;
  authority = await createAuthority();
  own = await authority.issue();
});

afterAll(() => cleanup.disposeAsync());

/** Reads three files with these contents; `undefined`: there is none. */
async function read(contents: Readonly<Record<'ca' | 'cert' | 'key', string | undefined>>) {
  for (const [name, text] of Object.entries(contents)) {
    await (text === undefined ? rm(join(folder, name), { force: true }) : writeFile(join(folder, name), text));
  }
  const paths = tlsPaths(
    {
      KAFKA_SSL_CA_FILE: join(folder, 'ca'),
      KAFKA_SSL_CERT_FILE: join(folder, 'cert'),
      KAFKA_SSL_KEY_FILE: join(folder, 'key'),
    },
    'KAFKA_SSL',
  );
  return readTlsMaterial(paths);
}

const usable = () => ({ ca: authority.cert, ...own });

test('files in order are returned as they are', async () => {
  const expired = await createAuthority('Old CA', -1);
  const bundle = `${expired.cert}\n${authority.cert}`;
  expect(await read({ ...usable(), ca: bundle })).toEqual({ ...own, ca: bundle });
});

test('an empty variable names no file', () => {
  expect(tlsPaths({ TLS_CERT_FILE: '', TLS_KEY_FILE: undefined }, 'TLS')).toEqual({});
});

test.each<
  [what: string, change: () => Promise<Partial<Record<'ca' | 'cert' | 'key', string | undefined>>>, errors: RegExp[]]
>([
  [
    'missing',
    async () => ({ ca: undefined, key: undefined }),
    [/_CA_FILE: \S+ does not exist/, /_KEY_FILE: \S+ does not exist/],
  ],
  ['empty', async () => ({ cert: '\n' }), [/_CERT_FILE: \S+ is empty/]],
  [
    'no PEM',
    async () => ({ ca: 'secret', key: 'secret' }),
    [/_CA_FILE: \S+ holds no certificate/, /_KEY_FILE: \S+ holds no private key/],
  ],
  [
    'broken PEM',
    async () => ({ ca: broken(own.cert), key: broken(own.key) }),
    [/_CA_FILE: \S+ holds a certificate that cannot be read/, /_KEY_FILE: \S+ holds a private key that cannot be read/],
  ],
  ['a certificate in the place of a key', async () => ({ key: own.cert }), [/_KEY_FILE: \S+ holds no private key/]],
  [
    'an encrypted key',
    async () => ({ key: own.key.replaceAll('PRIVATE KEY', 'ENCRYPTED PRIVATE KEY') }),
    [/_KEY_FILE: \S+ holds an encrypted key/],
  ],
  [
    'the key of another certificate',
    async () => ({ key: (await authority.issue()).key }),
    [/_KEY_FILE: \S+ is not the key of the certificate in KAFKA_SSL_CERT_FILE/],
  ],
  [
    'a key that is too weak',
    async () => authority.issue({ isWeak: true }),
    [/_CA_FILE: \S+, .*_CERT_FILE: \S+, .*_KEY_FILE: \S+ cannot be used for TLS \(ee key too small\)/],
  ],
  ['cut off', async () => ({ cert: `${own.cert}${authority.cert.slice(0, -40)}` }), [/_CERT_FILE: \S+ ends within/]],
  ['expired', async () => authority.issue({ days: -1 }), [/_CERT_FILE: \S+ holds a certificate that expired at 2/]],
  [
    'expired, before the certificate of an authority that is valid',
    async () => {
      const { cert, key } = await authority.issue({ days: -1 });
      return { cert: `${cert}\n${authority.cert}`, key };
    },
    [/_CERT_FILE: \S+ holds a certificate that expired at 2/],
  ],
  [
    'an expired authority',
    async () => ({ ca: (await createAuthority('Old CA', -1)).cert }),
    [/_CA_FILE: \S+ holds .* expired/],
  ],
])('%s: the error names the variable and the file, and no content', async (_what, change, errors) => {
  const error = await read({ ...usable(), ...(await change()) }).catch((thrown: unknown) => thrown);
  expect(error).toBeInstanceOf(TlsFilesError);
  const found = (error as TlsFilesError).errors;
  expect(found).toEqual(errors.map((pattern) => expect.stringMatching(pattern)));
  expect(found.join()).not.toMatch(/secret|BEGIN|MII/);
});

test('what was set in place of a path is not shown', () => {
  for (const path of [own.key, 'hunter2-the-secret', `/${own.key}`]) {
    expect(() => readTlsMaterial(tlsPaths({ TLS_KEY_FILE: path }, 'TLS'))).toThrow(
      'TLS_KEY_FILE: its value, which is no path beginning with / or ./, does not exist',
    );
  }
});

/** PEM whose content is cut off. */
function broken(pem: string): string {
  return pem.replace(/\n.{40}/, '\n');
}
