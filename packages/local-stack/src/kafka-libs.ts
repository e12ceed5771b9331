import { execFile } from 'node:child_process';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { LocalStackError, systemErrorCode } from './errors.ts';
import { cacheDir, ensureMavenLibs, hasMavenLibs, type MavenLibs } from './maven-libs.ts';

export const KAFKA_VERSION = '4.3.0';
const JAVA_MAJOR_MIN = 17;

/** An older version, which tests start. */
export const OLDER_KAFKA_VERSION = '3.9.2';

export type KafkaVersion = typeof KAFKA_VERSION | typeof OLDER_KAFKA_VERSION;

const libsOf = (version: KafkaVersion): MavenLibs => ({
  title: `Kafka ${version}`,
  size: '44 MB',
  pomFile: join(import.meta.dirname, '..', 'kafka', version === KAFKA_VERSION ? 'pom.xml' : `pom-${version}.xml`),
  installedDir: join(cacheDir, `kafka-${version}`),
});

/** Whether the jars of the present pom.xml are installed. */
export async function hasKafkaLibs(): Promise<boolean> {
  return await hasMavenLibs(libsOf(KAFKA_VERSION));
}

/** Makes sure that Kafka's jars are installed, and returns their folder: {@link ensureMavenLibs}. */
export async function ensureKafkaLibs(
  onProgress?: (line: string) => void,
  signal?: AbortSignal,
  version: KafkaVersion = KAFKA_VERSION,
): Promise<string> {
  return await ensureMavenLibs(libsOf(version), onProgress, signal);
}

/**
 * The major version of `java`, by default the one on the PATH.
 *
 * @throws LocalStackError JAVA_MISSING, or JAVA_TOO_OLD below 17.
 */
export async function checkJava(java = 'java'): Promise<number> {
  let output: string;
  try {
    output = (await promisify(execFile)(java, ['-version'])).stderr;
  } catch (error) {
    const reason = systemErrorCode(error) === 'ENOENT' ? 'there is no java on the PATH' : 'java -version fails';
    throw new LocalStackError('JAVA_MISSING', `Kafka needs Java ${JAVA_MAJOR_MIN} or newer, and ${reason}.`, {
      cause: error,
    });
  }
  // 'openjdk version "17.0.15"', and '"1.8.0_402"' before Java 9.
  const major = Number(/version "(?:1\.)?(\d+)/.exec(output)?.[1]);
  if (Number.isNaN(major) || major >= JAVA_MAJOR_MIN) return major;
  throw new LocalStackError(
    'JAVA_TOO_OLD',
    `Kafka needs Java ${JAVA_MAJOR_MIN} or newer; the one on the PATH is ${major}.`,
  );
}
