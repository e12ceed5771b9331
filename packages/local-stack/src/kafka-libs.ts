import { execFile, spawn } from 'node:child_process';
import { once } from 'node:events';
import { cp, mkdir, mkdtemp, readFile, rename, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { promisify } from 'node:util';
import { LocalStackError, systemErrorCode } from './errors.ts';

export const KAFKA_VERSION = '4.3.0';
const JAVA_MAJOR_MIN = 17;
const PROGRESS_EVERY_FILES = 20;
const OUTPUT_TAIL_LINES = 15;

const packageDir = join(import.meta.dirname, '..');
const cacheDir = join(packageDir, '..', '..', '.cache');
const pomFile = join(packageDir, 'kafka', 'pom.xml');
const installedDir = join(cacheDir, `kafka-${KAFKA_VERSION}`);

/** Where the jars are once `ensureKafkaLibs` has run: `.cache/kafka-<version>/libs` at the repository's root. */
export const kafkaLibsDir: string = join(installedDir, 'libs');

/** Whether the jars of the committed pom.xml are there. */
export async function hasKafkaLibs(): Promise<boolean> {
  const [wanted, installed] = await Promise.all([
    readFile(pomFile, 'utf8'),
    readFile(join(installedDir, 'pom.xml'), 'utf8').catch(() => undefined),
  ]);
  return wanted === installed;
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
  throw new LocalStackError('JAVA_TOO_OLD', `Kafka needs Java ${JAVA_MAJOR_MIN} or newer; the PATH has ${major}.`);
}

/**
 * The Maven on the PATH works; needed only while `hasKafkaLibs` says no.
 *
 * @throws LocalStackError MAVEN_MISSING
 */
export async function checkMaven(mvn = 'mvn'): Promise<void> {
  try {
    await promisify(execFile)(mvn, ['-v']);
  } catch (error) {
    const reason = systemErrorCode(error) === 'ENOENT' ? 'there is no mvn on the PATH' : 'mvn -v fails';
    throw new LocalStackError('MAVEN_MISSING', `Fetching Kafka needs Maven, and ${reason}.`, { cause: error });
  }
}

/**
 * Makes sure that Kafka's jars are in `kafkaLibsDir`, and gives that folder. The first time Maven fetches them (44 MB);
 * the folder appears at once and complete, however many processes do this at the same time.
 *
 * @param onProgress gets a line now and then, without a line end.
 * @throws LocalStackError MAVEN_MISSING or MAVEN_FAILED
 */
export async function ensureKafkaLibs(
  onProgress: (line: string) => void = () => {},
  signal?: AbortSignal,
): Promise<string> {
  if (await hasKafkaLibs()) return kafkaLibsDir;
  await checkMaven();
  onProgress(`Fetching Kafka ${KAFKA_VERSION} with Maven (44 MB, once)`);
  await mkdir(cacheDir, { recursive: true });
  const workDir = await mkdtemp(join(cacheDir, 'kafka-fetch-'));
  try {
    await cp(pomFile, join(workDir, 'pom.xml'));
    await copyDependencies(workDir, onProgress, signal);
    await rm(join(workDir, 'target'), { recursive: true, force: true });
    await install(workDir);
  } finally {
    await rm(workDir, { recursive: true, force: true });
  }
  onProgress(`Kafka ${KAFKA_VERSION} is here`);
  return kafkaLibsDir;
}

async function copyDependencies(
  workDir: string,
  onProgress: (line: string) => void,
  signal: AbortSignal | undefined,
): Promise<void> {
  const args = ['-B', 'dependency:copy-dependencies', '-DoutputDirectory=libs', '-DincludeScope=runtime'];
  const maven = spawn('mvn', args, { cwd: workDir, stdio: ['ignore', 'pipe', 'inherit'] });
  const closed = once(maven, 'close');
  const giveUp = () => maven.kill();
  signal?.addEventListener('abort', giveUp);
  const tail: string[] = [];
  let fetched = 0;
  for await (const line of createInterface({ input: maven.stdout })) {
    tail.push(line);
    if (tail.length > OUTPUT_TAIL_LINES) tail.shift();
    if (!line.includes('Downloaded from')) continue;
    fetched += 1;
    if (fetched % PROGRESS_EVERY_FILES === 0) onProgress(`Fetching Kafka ${KAFKA_VERSION}: ${fetched} files so far`);
  }
  const [code] = await closed;
  signal?.removeEventListener('abort', giveUp);
  signal?.throwIfAborted();
  if (code === 0) return;
  throw new LocalStackError(
    'MAVEN_FAILED',
    `Maven could not fetch Kafka's jars; check the network, and the mirrors and proxies of ~/.m2/settings.xml. It said:\n${tail.join('\n')}`,
  );
}

async function install(workDir: string): Promise<void> {
  if (await hasKafkaLibs()) return;
  await rm(installedDir, { recursive: true, force: true });
  try {
    await rename(workDir, installedDir);
  } catch (error) {
    // Another process was faster; what it installed is the same.
    if (!(await hasKafkaLibs())) throw error;
  }
}
