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

/** The folder of the jars after `ensureKafkaLibs`: `.cache/kafka-<version>/libs` in the repository. */
export const kafkaLibsDir: string = join(installedDir, 'libs');

/** Whether the jars of the present pom.xml are installed. */
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
  throw new LocalStackError(
    'JAVA_TOO_OLD',
    `Kafka needs Java ${JAVA_MAJOR_MIN} or newer; the one on the PATH is ${major}.`,
  );
}

/**
 * Checks that Maven works. It is needed only while `hasKafkaLibs` returns false.
 *
 * @throws LocalStackError MAVEN_MISSING
 */
export async function checkMaven(mvn = 'mvn'): Promise<void> {
  try {
    await promisify(execFile)(mvn, ['-v']);
  } catch (error) {
    const reason = systemErrorCode(error) === 'ENOENT' ? 'there is no mvn on the PATH' : 'mvn -v fails';
    throw new LocalStackError('MAVEN_MISSING', `Downloading Kafka needs Maven, and ${reason}.`, { cause: error });
  }
}

/**
 * Makes sure that Kafka's jars are in `kafkaLibsDir`, and returns that folder. The first time, Maven downloads them
 * (44 MB). Several processes may do this at the same time: the folder appears at once, with all jars.
 *
 * @param onProgress called with lines about the download
 * @throws LocalStackError MAVEN_MISSING or MAVEN_FAILED
 */
export async function ensureKafkaLibs(
  onProgress: (line: string) => void = () => {},
  signal?: AbortSignal,
): Promise<string> {
  if (await hasKafkaLibs()) return kafkaLibsDir;
  await checkMaven();
  onProgress(`Downloading Kafka ${KAFKA_VERSION} with Maven (44 MB, once)`);
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
  onProgress(`Kafka ${KAFKA_VERSION} is installed`);
  return kafkaLibsDir;
}

async function copyDependencies(
  workDir: string,
  onProgress: (line: string) => void,
  signal: AbortSignal | undefined,
): Promise<void> {
  const args = ['-B', 'dependency:copy-dependencies', '-DoutputDirectory=libs', '-DincludeScope=runtime'];
  const maven = spawn('mvn', args, { cwd: workDir, stdio: ['ignore', 'pipe', 'pipe'] });
  const closed = once(maven, 'close');
  const giveUp = () => maven.kill();
  signal?.addEventListener('abort', giveUp);
  const tail: string[] = [];
  let fetched = 0;
  const onLine = (line: string) => {
    tail.push(line);
    if (tail.length > OUTPUT_TAIL_LINES) tail.shift();
    if (!line.includes('Downloaded from')) return;
    fetched += 1;
    if (fetched % PROGRESS_EVERY_FILES === 0) onProgress(`Downloading Kafka ${KAFKA_VERSION}: ${fetched} files so far`);
  };
  for (const output of [maven.stdout, maven.stderr]) createInterface({ input: output }).on('line', onLine);
  const [code] = await closed;
  signal?.removeEventListener('abort', giveUp);
  signal?.throwIfAborted();
  if (code === 0) return;
  throw new LocalStackError(
    'MAVEN_FAILED',
    `Maven could not download Kafka's jars. Check the network, and the mirrors and proxies in ~/.m2/settings.xml. The end of its output:\n${tail.join('\n')}`,
  );
}

async function install(workDir: string): Promise<void> {
  if (await hasKafkaLibs()) return;
  await rm(installedDir, { recursive: true, force: true });
  try {
    await rename(workDir, installedDir);
  } catch (error) {
    // Another process has installed the same jars meanwhile.
    if (!(await hasKafkaLibs())) throw error;
  }
}
