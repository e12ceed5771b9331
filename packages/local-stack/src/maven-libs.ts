import { execFile, spawn } from 'node:child_process';
import { once } from 'node:events';
import { cp, mkdir, mkdtemp, readFile, rename, rm } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { createInterface } from 'node:readline';
import { promisify } from 'node:util';
import { LocalStackError, systemErrorCode } from './errors.ts';

const PROGRESS_EVERY_MS = 10_000;
const OUTPUT_TAIL_LINES = 15;

/** The folder for what is downloaded once: `.cache` in the repository. */
export const cacheDir = join(import.meta.dirname, '..', '..', '..', '.cache');

/** Jars that Maven downloads. */
export interface MavenLibs {
  /** For messages: "Kafka 4.3.0". */
  readonly title: string;
  /** For messages: "44 MB". */
  readonly size: string;
  /** Names the jars. When it changes, they are downloaded again. */
  readonly pomFile: string;
  /** A folder in {@link cacheDir}; the jars are in its folder `libs`. */
  readonly installedDir: string;
}

/** Whether the jars of the present pom.xml are installed. */
export async function hasMavenLibs({ pomFile, installedDir }: MavenLibs): Promise<boolean> {
  const [wanted, installed] = await Promise.all([
    readFile(pomFile, 'utf8'),
    readFile(join(installedDir, 'pom.xml'), 'utf8').catch(() => undefined),
  ]);
  return wanted === installed;
}

/**
 * Checks that Maven works. It is needed only while {@link hasMavenLibs} returns false.
 *
 * @throws LocalStackError MAVEN_MISSING
 */
export async function checkMaven(mvn = 'mvn'): Promise<void> {
  try {
    await promisify(execFile)(mvn, ['-v']);
  } catch (error) {
    const reason = systemErrorCode(error) === 'ENOENT' ? 'there is no mvn on the PATH' : 'mvn -v fails';
    throw new LocalStackError('MAVEN_MISSING', `Downloading jars needs Maven, and ${reason}.`, { cause: error });
  }
}

/**
 * Makes sure that jars are installed, and returns their folder. The first time, Maven downloads them. Several processes
 * may do this at the same time: the folder appears at once, with all jars.
 *
 * @param onProgress called with lines about the download
 * @throws LocalStackError MAVEN_MISSING or MAVEN_FAILED
 */
export async function ensureMavenLibs(
  libs: MavenLibs,
  onProgress: (line: string) => void = () => {},
  signal?: AbortSignal,
): Promise<string> {
  const folder = join(libs.installedDir, 'libs');
  if (await hasMavenLibs(libs)) return folder;
  await checkMaven();
  onProgress(`Downloading ${libs.title} with Maven (${libs.size}, once)`);
  await mkdir(dirname(libs.installedDir), { recursive: true });
  const workDir = await mkdtemp(`${libs.installedDir}-fetch-`);
  try {
    await cp(libs.pomFile, join(workDir, 'pom.xml'));
    await copyDependencies(libs, workDir, onProgress, signal);
    await rm(join(workDir, 'target'), { recursive: true, force: true });
    await install(libs, workDir);
  } finally {
    await rm(workDir, { recursive: true, force: true });
  }
  onProgress(`${libs.title} is installed`);
  return folder;
}

async function copyDependencies(
  { title }: MavenLibs,
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
  let shownAt = performance.now();
  const onLine = (line: string) => {
    tail.push(line);
    if (tail.length > OUTPUT_TAIL_LINES) tail.shift();
    if (!line.includes('Downloaded from')) return;
    fetched += 1;
    if (performance.now() - shownAt < PROGRESS_EVERY_MS) return;
    shownAt = performance.now();
    onProgress(`Downloading ${title}: ${fetched} files so far`);
  };
  for (const output of [maven.stdout, maven.stderr]) createInterface({ input: output }).on('line', onLine);
  const [code] = await closed;
  signal?.removeEventListener('abort', giveUp);
  signal?.throwIfAborted();
  if (code === 0) return;
  throw new LocalStackError(
    'MAVEN_FAILED',
    `Maven could not download ${title}. Check the network, and the mirrors and proxies in ~/.m2/settings.xml. The end of its output:\n${tail.join('\n')}`,
  );
}

async function install(libs: MavenLibs, workDir: string): Promise<void> {
  if (await hasMavenLibs(libs)) return;
  const { installedDir } = libs;
  await rm(installedDir, { recursive: true, force: true });
  try {
    await rename(workDir, installedDir);
  } catch (error) {
    // Another process has installed the same jars meanwhile.
    if (!(await hasMavenLibs(libs))) throw error;
  }
}
