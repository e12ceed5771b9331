import { execFile } from 'node:child_process';
import { readdir, readFile } from 'node:fs/promises';
import { dirname } from 'node:path';
import { promisify } from 'node:util';
import { CLICKHOUSE_IMAGE, KAFKA_IMAGE } from '@sluice/local-stack/containers';
import { makeTempDir } from '@sluice/local-stack/testing/temp-dir';
import { beforeAll, describe, expect, test } from 'vitest';
import { parse } from 'yaml';

const ROOT = new URL('../../', import.meta.url);
const SERVICES = ['ingest-api', 'writer', 'query-api', 'trench-api'];
const PINNED = /^[a-z/-]+:\d+\.\d+\.\d+(?:\.\d+)?(?:-trixie-slim)?@sha256:[0-9a-f]{64}$/;

interface Manifest {
  readonly engines: { readonly pnpm: string };
  readonly optionalDependencies: Readonly<Record<string, string>>;
}

let dockerfile: string;
let manifest: Manifest;

async function read(name: string): Promise<string> {
  return await readFile(new URL(name, ROOT), 'utf8');
}

beforeAll(async () => {
  dockerfile = await read('Dockerfile');
  manifest = JSON.parse(await read('package.json'));
});

describe('base images and engines', () => {
  test('the base image is an argument, pinned by version and digest, and has the Node.js of the lockfile', () => {
    const [, image = ''] = /^ARG NODE_IMAGE=(\S+)$/m.exec(dockerfile) ?? [];
    expect(image).toMatch(PINNED);
    for (const version of Object.values(manifest.optionalDependencies)) expect(image).toContain(`node:${version}-`);
    const bases = [...dockerfile.matchAll(/^FROM (?:--platform=\S+ )?(\S+)/gm)].map(([, base]) => base);
    expect(bases).toEqual(['$NODE_IMAGE', '$NODE_IMAGE', '$NODE_IMAGE', 'scratch']);
  });

  test('the images of the tests are those of docker-compose.yml, pinned by version and digest', async () => {
    const { services } = parse(await read('docker-compose.yml'), { merge: true });
    expect([services.kafka.image, services.clickhouse.image]).toEqual([KAFKA_IMAGE, CLICKHOUSE_IMAGE]);
    for (const image of [KAFKA_IMAGE, CLICKHOUSE_IMAGE]) expect(image).toMatch(PINNED);
  });

  test('they have the versions of the local engines', async () => {
    const pom = await read('packages/local-stack/kafka/pom.xml');
    expect(pom).toContain(`<version>${/:([\d.]+)@/.exec(KAFKA_IMAGE)?.[1]}</version>`);
    const [, engine] = /'@chdb\/lib-linux-x64-gnu@(\d+\.\d+\.\d+)/.exec(await read('pnpm-lock.yaml')) ?? [];
    expect(CLICKHOUSE_IMAGE).toContain(`clickhouse-server:${engine}.`);
  });

  test('the Dockerfile and package.json name the same pnpm', () => {
    expect(dockerfile).toContain(`pnpm@${manifest.engines.pnpm} `);
  });
});

describe('the image', () => {
  test('runs as an ordinary user and has a health check', () => {
    expect(dockerfile).toMatch(/^USER node$/m);
    expect(dockerfile).toMatch(/^HEALTHCHECK .*\n +CMD \["node", "packages\/shared\/src\/http\/check-health.ts"\]$/m);
  });

  test('holds what Node.js compiles at a start, in the folder where a service looks for it', async () => {
    const [, step = ''] = /^RUN (for program in [\s\S]*?done)$/m.exec(dockerfile) ?? [];
    expect(dockerfile).toMatch(/^USER node\n[\s\S]*^ENV NODE_COMPILE_CACHE=\/sluice\/\.cache\/compile\nRUN for /m);
    await using folder = await makeTempDir();
    const env = {
      PATH: `${dirname(process.execPath)}:${process.env['PATH']}`,
      SERVICE: 'ingest-api',
      NODE_COMPILE_CACHE: folder.path,
    };
    const run = promisify(execFile);
    await run('sh', ['-c', step], { cwd: ROOT, env });
    const filled = await readdir(folder.path, { recursive: true });
    // The files of the service, of its packages, and of the command.
    expect(filled.length).toBeGreaterThan(500);
    await run('sh', ['-c', step], { cwd: ROOT, env });
    expect(await readdir(folder.path, { recursive: true })).toEqual(filled);
  });

  test('lets the user that it runs as read what was compiled, and not change it', () => {
    const [, after = ''] = /^RUN for program in [\s\S]*?done\n([\s\S]*)/m.exec(dockerfile) ?? [];
    expect(after).toMatch(/^USER root\nRUN chown -R root:root \.cache && chmod -R a\+rX \.cache\nUSER node\n/);
  });

  test('is one layer without npm, yarn, apt and dpkg, and the files of Sluice', () => {
    const [system = '', final = ''] = dockerfile.split(/^FROM /m).slice(-2);
    expect(system).toMatch(
      /^RUN rm -rf \/usr\/local\/lib\/node_modules \/usr\/local\/bin\/npm \/usr\/local\/bin\/npx /m,
    );
    expect(system).toMatch(/dpkg --purge \$force apt /);
    expect(system).toMatch(/dpkg --purge \$force dpkg /);
    expect(final).toMatch(/^scratch\nCOPY --from=system \/ \/$/m);
  });

  test('has packages that are the same on every architecture, since those of the build are copied', async () => {
    const stages = dockerfile.split(/^FROM /m).slice(1);
    const ofBuild = stages.filter((stage) => stage.startsWith('--platform=$BUILDPLATFORM '));
    expect(ofBuild.map((stage) => / AS (\w+)$/m.exec(stage)?.[1])).toEqual(['dependencies', 'console']);
    const { importers, packages, snapshots } = parse(await read('pnpm-lock.yaml'));
    const installed = new Set<string>();
    const add = (name: string, version: string) => {
      const key = `${name}@${version}`;
      if (version.startsWith('link:') || installed.has(key)) return;
      installed.add(key);
      for (const [inner, of] of Object.entries<string>(snapshots[key].dependencies ?? {})) add(inner, of);
    };
    for (const folder of [
      'packages/shared',
      'packages/submissions',
      'packages/storage',
      'packages/servers',
      'packages/cli',
      ...SERVICES.map((name) => `services/${name}`),
    ]) {
      const { dependencies } = importers[folder];
      for (const [name, { version }] of Object.entries<{ version: string }>(dependencies)) add(name, version);
    }
    expect(installed.size).toBeGreaterThan(60);
    const ofOneArchitecture = [...installed].filter((key) => {
      const { cpu, os, libc } = packages[key.replace(/\(.*/, '')];
      return cpu ?? os ?? libc;
    });
    expect(ofOneArchitecture).toEqual([]);
  });

  test('has a list of its packages, made by pnpm', () => {
    const [, dependencies = ''] = dockerfile.split(/^FROM /m).slice(0, 2);
    expect(dependencies).toMatch(/pnpm sbom .*\n.* --out sbom\.cdx\.json/);
  });

  test('is installed with the registry and the certificates of the build, which no layer holds', async () => {
    const mounts = [...dockerfile.matchAll(/--mount=type=secret,id=(\w+),target=(\S+)/g)].map(([, id]) => id);
    expect(mounts).toEqual(['npmrc', 'ca', 'npmrc', 'ca']);
    const { services, secrets } = parse(await read('docker-compose.registry.yml'));
    expect(Object.keys(secrets)).toEqual(['npmrc', 'ca']);
    expect(services).toEqual(
      Object.fromEntries(SERVICES.map((name) => [name, { build: { secrets: ['npmrc', 'ca'] } }])),
    );
  });
});

describe('.dockerignore', () => {
  /** Docker's patterns: `*` is anything in one folder, also a dot; a leading `**` any number of folders. */
  function toRegExp(pattern: string): RegExp {
    const escaped = pattern.replaceAll(/[.+]/g, '\\$&').replaceAll(/(?<!\*)\*(?!\*)/g, '[^/]*');
    return new RegExp(`^${escaped.replace('**/', '(?:.*/)?')}$`);
  }

  /** The repository's files below a folder, without what git ignores. */
  async function filesIn(folder: string): Promise<string[]> {
    const entries = await readdir(new URL(folder, ROOT), { withFileTypes: true });
    const kept = entries.filter(({ name }) => !['.git', '.cache', '.sluice', 'node_modules'].includes(name));
    const paths = kept.map((entry) =>
      entry.isDirectory() ? filesIn(`${folder}${entry.name}/`) : [`${folder}${entry.name}`],
    );
    return (await Promise.all(paths)).flat();
  }

  /** The last pattern that matches a path, or a folder that it is in, decides. */
  function isIgnored(path: string, patterns: readonly string[]): boolean {
    const parts = path.split('/');
    const prefixes = parts.map((_part, index) => parts.slice(0, index + 1).join('/'));
    const matching = patterns.filter((pattern) =>
      prefixes.some((prefix) => toRegExp(pattern.replace(/^!/, '')).test(prefix)),
    );
    return matching.at(-1)?.startsWith('!') === false;
  }

  test('lets in what the Dockerfile copies, and nothing else of the repository', async () => {
    const patterns = (await read('.dockerignore')).split('\n').filter((line) => line !== '' && !line.startsWith('#'));
    const files = await filesIn('');
    const copied = [...dockerfile.matchAll(/^COPY (?!--)(.+) \S+$/gm)]
      .flatMap(([, sources = '']) => sources.split(' '))
      .flatMap((source) =>
        source.includes('$') ? SERVICES.map((name) => source.replace('$SERVICE', name)) : [source],
      );
    const isCopied = (file: string) => copied.some((source) => file === source || file.startsWith(`${source}/`));
    const isForTests = (file: string) => file.endsWith('.test.ts') || file.includes('/testing/');
    // Their packages are in no image.
    const isForNpm = (file: string) => /^packages\/cli\/src\/(import|export|transfer)\//.test(file);
    const expected = files.filter((file) => isCopied(file) && !isForTests(file) && !isForNpm(file));
    expect(files.filter((file) => !isIgnored(file, patterns))).toEqual(expected);
    expect(copied.filter((source) => !files.some((file) => file.startsWith(source)))).toEqual([]);
    const others = ['.env', '.sluice/dev-key', '.git/config', 'node_modules/x', 'services/writer/node_modules/x'];
    expect(others.filter((path) => !isIgnored(path, patterns))).toEqual([]);
  });

  test('the Dockerfile copies the manifest of every package that an image installs', async () => {
    for (const name of [
      ...SERVICES.map((service) => `services/${service}`),
      'packages/shared',
      'packages/console',
      'packages/cli',
    ]) {
      expect(dockerfile).toContain(`COPY ${name}/package.json ${name}/`);
    }
  });
});
