import { execFile } from 'node:child_process';
import { createHash } from 'node:crypto';
import { existsSync } from 'node:fs';
import { access, mkdir, mkdtemp, rename, rm } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { promisify } from 'node:util';

/**
 * What a start of Kafka reads rather than works out again. Loading its classes from an archive, as Java calls this class
 * data sharing, halves the CPU time of a start, and copying a file takes the place of Kafka's format tool.
 */
export interface KafkaArchive {
  /** The classes that a broker loads until it answers. */
  readonly classesFile: string;
  /** The first metadata of any cluster without users: the version of its format. */
  readonly bootstrapFile: string;
}

const CLASSES = 'classes.jsa';

/** The file of a formatted log folder, and of an archive. */
export const BOOTSTRAP = 'bootstrap.checkpoint';

/**
 * Returns the archive of these jars and of the Java on the PATH, made the first time. Several processes may do this at the
 * same time. Returns undefined when it cannot be made: Kafka starts without one, and takes longer.
 *
 * @param libs the folder of the jars; the archive is beside it
 * @param make starts a broker without data with more arguments for Java, stops it, and returns its log folder
 */
export async function ensureKafkaArchive(
  libs: string,
  make: (dir: string, javaOption: string) => Promise<string>,
): Promise<KafkaArchive | undefined> {
  try {
    const folder = join(dirname(libs), `archive-${await nameOfJava(libs)}`);
    const archive = { classesFile: join(folder, CLASSES), bootstrapFile: join(folder, BOOTSTRAP) };
    if (existsSync(folder)) return archive;
    const workDir = await mkdtemp(`${folder}-new-`);
    try {
      const fresh = join(workDir, 'archive');
      await mkdir(fresh);
      const logDir = await make(join(workDir, 'data'), `-XX:ArchiveClassesAtExit=${join(fresh, CLASSES)}`);
      await rename(join(logDir, BOOTSTRAP), join(fresh, BOOTSTRAP));
      await access(join(fresh, CLASSES));
      // Another process may have made the same meanwhile.
      await rename(fresh, folder).catch(() => undefined);
    } finally {
      await rm(workDir, { recursive: true, force: true });
    }
    return existsSync(folder) ? archive : undefined;
  } catch {
    return undefined;
  }
}

/** Java reads an archive only at the version that wrote it, and with jars at the same path. */
async function nameOfJava(libs: string): Promise<string> {
  const { stderr } = await promisify(execFile)('java', ['-version']);
  return createHash('sha256').update(`${stderr}\n${libs}`).digest('hex').slice(0, 12);
}
