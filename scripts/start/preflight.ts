import { mkdir, statfs } from 'node:fs/promises';
import { LocalStackError } from '@sluice/local-stack/errors';
import { checkJava, hasKafkaLibs } from '@sluice/local-stack/kafka-libs';
import { checkMaven } from '@sluice/local-stack/maven-libs';
import type { Settings } from './settings.ts';
import { checkPorts } from './taken-ports.ts';

const FREE_BYTES_MIN = 1024 ** 3;

/** Everything that would make this start fail, one sentence each, found before anything is started. */
export async function findObstacles(settings: Settings): Promise<string[]> {
  const found = await Promise.all([checkDisk(settings.dataDir), checkPorts(settings), checkKafkaTools(settings)]);
  return found.flat();
}

async function checkDisk(dataDir: string): Promise<string[]> {
  await mkdir(dataDir, { recursive: true });
  const { bavail, bsize } = await statfs(dataDir);
  const freeBytes = bavail * bsize;
  if (freeBytes >= FREE_BYTES_MIN) return [];
  const free = Math.floor(freeBytes / 1024 ** 2);
  return [`The disk of ${dataDir} has ${free} MiB free; 1 GiB is needed. Free some, or set SLUICE_DATA_DIR.`];
}

async function checkKafkaTools({ externalKafka }: Settings): Promise<string[]> {
  if (externalKafka) return [];
  const needsMaven = !(await hasKafkaLibs());
  const checks = await Promise.allSettled([checkJava(), needsMaven ? checkMaven() : undefined]);
  return checks.flatMap((check) => {
    if (check.status === 'fulfilled') return [];
    if (!(check.reason instanceof LocalStackError)) throw check.reason;
    return [`${check.reason.message} Install it, or set KAFKA_BROKERS to a Kafka that is running.`];
  });
}
