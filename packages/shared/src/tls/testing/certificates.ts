// tsyringe, of which @peculiar/x509 consists, does not start without it.
import 'reflect-metadata';
import {
  BasicConstraintsExtension,
  PemConverter,
  SubjectAlternativeNameExtension,
  X509CertificateGenerator,
} from '@peculiar/x509';

const ALGORITHM = { name: 'ECDSA', namedCurve: 'P-256', hash: 'SHA-256' };
const WEAK = {
  ...{ name: 'RSASSA-PKCS1-v1_5', modulusLength: 1_024, hash: 'SHA-256' },
  publicExponent: new Uint8Array([1, 0, 1]),
};
const LOOPBACK = { type: 'ip', value: '127.0.0.1' } as const;

const DAY_MS = 86_400_000;

/** A certificate and its private key (PKCS #8), as PEM. */
export interface Certificate {
  readonly cert: string;
  readonly key: string;
}

export interface CertificateOptions {
  /** The common name. Default `test`. */
  readonly name?: string;
  /** Default: the address 127.0.0.1. */
  readonly host?: { readonly type: 'ip' | 'dns'; readonly value: string };
  /** When it expires, in days from now; negative: it has expired. Default 1. */
  readonly days?: number;
  /** Whether its key is too short for OpenSSL. Default false. */
  readonly isWeak?: boolean;
}

/** A certificate authority for tests. */
export interface Authority extends Certificate {
  /** Creates a certificate for a server or a client. */
  issue(options?: CertificateOptions): Promise<Certificate>;
}

/** @param days when it expires, as of {@link CertificateOptions} */
export async function createAuthority(name = 'Test CA', days = 1): Promise<Authority> {
  const keys = await crypto.subtle.generateKey(ALGORITHM, true, ['sign', 'verify']);
  const own = await X509CertificateGenerator.createSelfSigned({
    name: `CN=${name}`,
    keys,
    signingAlgorithm: ALGORITHM,
    ...validity(days),
    extensions: [new BasicConstraintsExtension(true, undefined, true)],
  });
  return {
    cert: own.toString('pem'),
    key: await pemOf(keys.privateKey),
    async issue({ name: subject = 'test', host = LOOPBACK, days: ownDays = 1, isWeak = false } = {}) {
      const issued = isWeak
        ? await crypto.subtle.generateKey(WEAK, true, ['sign', 'verify'])
        : await crypto.subtle.generateKey(ALGORITHM, true, ['sign', 'verify']);
      const certificate = await X509CertificateGenerator.create({
        subject: `CN=${subject}`,
        issuer: own.subject,
        publicKey: issued.publicKey,
        signingKey: keys.privateKey,
        signingAlgorithm: ALGORITHM,
        ...validity(ownDays),
        extensions: [new SubjectAlternativeNameExtension([host])],
      });
      return { cert: certificate.toString('pem'), key: await pemOf(issued.privateKey) };
    },
  };
}

function validity(days: number) {
  return { notBefore: new Date(Date.now() - 30 * DAY_MS), notAfter: new Date(Date.now() + days * DAY_MS) };
}

async function pemOf(key: CryptoKey): Promise<string> {
  return `${PemConverter.encode(await crypto.subtle.exportKey('pkcs8', key), 'PRIVATE KEY')}\n`;
}
