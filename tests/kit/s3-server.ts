import { mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { startEngineProcess } from '@sluice/local-stack/engine-process';
import { cacheDir, ensureMavenLibs } from '@sluice/local-stack/maven-libs';
import { findFreePorts } from '@sluice/local-stack/ports';
import { guardCommand } from '@sluice/local-stack/process-guard';
import { makeTempDir } from '@sluice/local-stack/testing/temp-dir';

const S3PROXY = {
  title: 'S3Proxy 2.6.0',
  size: '32 MB',
  pomFile: join(import.meta.dirname, 's3proxy', 'pom.xml'),
  installedDir: join(cacheDir, 's3proxy-2.6.0'),
};

/** An S3 server with one bucket. `await using` ends it, and removes its objects. */
export interface S3Server extends AsyncDisposable {
  /** The address of the bucket. */
  readonly bucketUrl: string;
  /** The folder of the bucket: each file in it is an object. */
  readonly bucketDir: string;
}

/** Starts S3Proxy on 127.0.0.1 with one account. */
export async function startS3Server(account: { readonly keyId: string; readonly secret: string }): Promise<S3Server> {
  await using cleanup = new AsyncDisposableStack();
  const libs = await ensureMavenLibs(S3PROXY, console.log);
  const folder = cleanup.use(await makeTempDir()).path;
  const [port = 0] = await findFreePorts(1);
  const url = `http://127.0.0.1:${port}`;
  const bucketDir = join(folder, 'buckets', 'backups');
  await mkdir(bucketDir, { recursive: true });
  const properties = {
    's3proxy.endpoint': url,
    's3proxy.authorization': 'aws-v4',
    's3proxy.identity': account.keyId,
    's3proxy.credential': account.secret,
    'jclouds.provider': 'filesystem',
    'jclouds.filesystem.basedir': join(folder, 'buckets'),
    'jclouds.identity': 'unused',
    'jclouds.credential': 'unused',
  };
  const file = join(folder, 's3proxy.properties');
  const lines = Object.entries(properties).map(([name, value]) => `${name}=${value}\n`);
  await writeFile(file, lines.join(''), { mode: 0o600 });
  await writeFile(join(folder, 'logback.xml'), '<configuration><root level="WARN"/></configuration>');
  const server = await startEngineProcess({
    name: 'S3Proxy',
    // Java would outlive a test that is killed.
    ...guardCommand('java', [
      ...['-Xmx256m', '-XX:+UseSerialGC', `-Dlogback.configurationFile=${join(folder, 'logback.xml')}`],
      ...['-cp', join(libs, '*'), 'org.gaul.s3proxy.Main', '--properties', file],
    ]),
    cwd: folder,
    logFile: join(folder, 's3proxy.log'),
    // It refuses a request without credentials, and so shows that it listens.
    probe: async (signal) => void (await fetch(url, { signal })),
    readyTimeoutMs: 120_000,
    stopTimeoutMs: 10_000,
  });
  cleanup.defer(() => server.kill9());
  const running = cleanup.move();
  return {
    bucketUrl: `${url}/backups`,
    bucketDir,
    [Symbol.asyncDispose]: () => running.disposeAsync(),
  };
}
