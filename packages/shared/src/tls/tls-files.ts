import type { Logger } from '../base/log.ts';
import { readTlsMaterial, type TlsFilesError, type TlsMaterial, type TlsPaths } from './tls-material.ts';

/**
 * The files of TLS, which are read again for each new connection, so that a certificate can be replaced while a service
 * runs. Files that cannot be used change nothing: those before stay in force, and the log says so once.
 */
export class TlsFiles {
  readonly #paths: TlsPaths;
  readonly #logger: Logger | undefined;
  #material: TlsMaterial;
  /** Why the files could not be used the last time. */
  #error: string | undefined;

  /** @throws {TlsFilesError} */
  constructor(paths: TlsPaths, logger?: Logger) {
    this.#paths = paths;
    this.#logger = logger;
    this.#material = readTlsMaterial(paths);
  }

  /** Returns what is in force for a new connection: the same object as before when nothing has changed. */
  current(): TlsMaterial {
    const files = Object.values(this.#paths).map(({ path }) => path);
    try {
      const material = readTlsMaterial(this.#paths);
      if (!isSame(material, this.#material)) {
        this.#material = material;
        this.#logger?.info({ files }, 'changed TLS files are in force');
      } else if (this.#error !== undefined) this.#logger?.info({ files }, 'the TLS files can be used again');
      this.#error = undefined;
    } catch (error) {
      const { errors, message } = error as TlsFilesError;
      if (message !== this.#error)
        this.#logger?.error({ errors }, 'TLS files cannot be used; those before stay in force');
      this.#error = message;
    }
    return this.#material;
  }
}

function isSame(one: TlsMaterial, other: TlsMaterial): boolean {
  return one.ca === other.ca && one.cert === other.cert && one.key === other.key;
}
