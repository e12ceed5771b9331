import { createPrivateKey, type KeyObject, X509Certificate } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { createSecureContext } from 'node:tls';
import { shownPath } from '../text/printable.ts';

/** Which variables name the files: those that begin with this, and end with `_CA_FILE`, `_CERT_FILE` and `_KEY_FILE`. */
export type TlsPrefix = 'KAFKA_SSL' | 'CLICKHOUSE' | 'TLS';

const KINDS = ['ca', 'cert', 'key'] as const;

type Kind = (typeof KINDS)[number];

/** The path of a file, and the variable that names it. */
export interface NamedFile {
  readonly variable: string;
  readonly path: string;
}

export type TlsPaths = Readonly<Partial<Record<Kind, NamedFile>>>;

/** The contents of the files, as PEM: certificates of authorities, an own certificate with its chain, its private key. */
export type TlsMaterial = Readonly<Partial<Record<Kind, string>>>;

/** Files cannot be used. `errors` names the variable and the path of each, and never shows content. */
export class TlsFilesError extends Error {
  override readonly name = 'TlsFilesError';
  readonly errors: readonly string[];

  constructor(errors: readonly string[]) {
    super(errors.join('; '));
    this.errors = errors;
  }
}

/** Returns the files that an environment, or the configuration made of it, names. An empty path counts as none. */
export function tlsPaths(config: Readonly<Record<string, unknown>>, prefix: TlsPrefix): TlsPaths {
  const named = KINDS.flatMap((kind) => {
    const variable = `${prefix}_${kind.toUpperCase()}_FILE`;
    const path = config[variable];
    return typeof path === 'string' && path !== '' ? [[kind, { variable, path }] as const] : [];
  });
  return Object.fromEntries(named);
}

/**
 * Reads the files and checks them: PEM of the right kind, certificates that are valid now, a key that belongs to its
 * certificate, and strong enough for OpenSSL. Of several authorities one has to be valid.
 *
 * @throws {TlsFilesError} naming every error
 */
export function readTlsMaterial(paths: TlsPaths): TlsMaterial {
  const errors: string[] = [];
  const check = <Result>(named: NamedFile | undefined, read: (text: string) => Result) => {
    if (!named) return undefined;
    try {
      const text = readText(named.path);
      return { text, result: read(text) };
    } catch (error) {
      errors.push(`${named.variable}: ${shownPath(named.path)} ${(error as Error).message}`);
      return undefined;
    }
  };
  const ca = check(paths.ca, (text) => requireOneValid(certificatesIn(text)));
  const cert = check(paths.cert, (text) => requireOneValid(certificatesIn(text).slice(0, 1)));
  const key = check(paths.key, privateKeyIn);
  if (cert && key && !cert.result.checkPrivateKey(key.result)) {
    errors.push(
      `${paths.key?.variable}: ${paths.key?.path} is not the key of the certificate in ${paths.cert?.variable}`,
    );
  }
  if (errors.length > 0) throw new TlsFilesError(errors);
  const material = {
    ...(ca && { ca: ca.text }),
    ...(cert && { cert: cert.text }),
    ...(key && { key: key.text }),
  };
  requireAccepted(material, paths);
  return material;
}

/** Otherwise a connection would fail, or the server that is given it. @throws {TlsFilesError} */
function requireAccepted(material: TlsMaterial, paths: TlsPaths): void {
  try {
    createSecureContext(material);
  } catch (error) {
    const { reason, message } = error as Error & { readonly reason?: string };
    const named = Object.values(paths).map(({ variable, path }) => `${variable}: ${path}`);
    throw new TlsFilesError([`${named.join(', ')} cannot be used for TLS (${reason ?? message})`]);
  }
}

function readText(path: string): string {
  let text: string;
  try {
    text = readFileSync(path, 'utf8');
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    throw new Error(code === 'ENOENT' ? 'does not exist' : `cannot be read (${code})`, { cause: error });
  }
  if (text.trim() === '') throw new Error('is empty');
  return text;
}

function certificatesIn(text: string): X509Certificate[] {
  const blocks = text.match(/-----BEGIN CERTIFICATE-----.*?-----END CERTIFICATE-----/gs) ?? [];
  if (blocks.length === 0) throw new Error('holds no certificate in PEM format');
  const begun = text.match(/-----BEGIN CERTIFICATE-----/g)?.length ?? 0;
  if (blocks.length < begun) throw new Error('ends within a certificate');
  return blocks.map((block) => {
    try {
      return new X509Certificate(block);
    } catch (error) {
      throw new Error('holds a certificate that cannot be read', { cause: error });
    }
  });
}

/** Returns the first valid one. */
function requireOneValid(certificates: readonly X509Certificate[]): X509Certificate {
  const now = new Date();
  const valid = certificates.find(({ validFromDate, validToDate }) => validFromDate <= now && now <= validToDate);
  if (valid) return valid;
  const [{ validFromDate, validToDate }] = certificates as [X509Certificate];
  throw new Error(
    validToDate < now
      ? `holds a certificate that expired at ${validToDate.toISOString()}`
      : `holds a certificate that is valid only from ${validFromDate.toISOString()}`,
  );
}

function privateKeyIn(text: string): KeyObject {
  if (/-----BEGIN ENCRYPTED PRIVATE KEY-----|Proc-Type: 4,ENCRYPTED/.test(text)) {
    throw new Error('holds an encrypted key; a key without a passphrase is needed');
  }
  if (!/-----BEGIN (\w+ )?PRIVATE KEY-----/.test(text)) throw new Error('holds no private key in PEM format');
  try {
    return createPrivateKey(text);
  } catch (error) {
    throw new Error('holds a private key that cannot be read', { cause: error });
  }
}
