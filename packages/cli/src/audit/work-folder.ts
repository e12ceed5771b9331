import { createHash } from 'node:crypto';
import {
  existsSync,
  lstatSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import { Refused } from '@sluice/shared/config/command-line';
import type { TopicRole } from './topic-logs.ts';

/** A piece of the log that is read, and how far it is. Offsets are texts: JSON has no large integers. */
export interface PieceState {
  readonly role: TopicRole;
  readonly topic: string;
  readonly partition: number;
  readonly from: string;
  readonly to: string;
  next: string;
}

/** How far an audit is, so that it can go on after its process has ended. */
export interface AuditState {
  readonly version: 1;
  /** What it was asked for: another command begins anew. */
  readonly command: string;
  readonly id: string;
  readonly startedMs: number;
  readonly sinceMs: number;
  readonly untilMs: number;
  readonly notes: readonly string[];
  readonly pieces: readonly PieceState[];
  workspaces: readonly string[];
  eventLengths: readonly number[];
  changeLengths: readonly number[];
}

/** The folder of the files of an audit. Its name follows from what is audited, and nothing in it from what is read. */
export class WorkFolder {
  readonly path: string;

  /**
   * @param parent where the folder is, or is made
   * @param identity what is audited
   * @throws the system's error when it cannot be made
   * @throws {Refused} when it is somebody else's
   */
  constructor(parent: string, identity: readonly string[]) {
    const name = createHash('sha256').update(JSON.stringify(identity)).digest('hex').slice(0, 16);
    this.path = join(parent, `sluice-audit-${name}`);
    mkdirSync(this.path, { recursive: true, mode: 0o700 });
    const found = lstatSync(this.path);
    // Everybody may make a folder in that of temporary files.
    if (!found.isDirectory() || (process.getuid && found.uid !== process.getuid())) {
      throw new Refused(`${this.path} is not a folder of this user: remove it, or choose another place with --work.`);
    }
    this.#lock();
  }

  /** Returns the state of an audit that did not end; `undefined` without one of this command. */
  read(command: string): AuditState | undefined {
    try {
      const state = JSON.parse(readFileSync(join(this.path, 'state.json'), 'utf8')) as AuditState;
      return state.version === 1 && state.command === command ? state : undefined;
    } catch {
      return undefined;
    }
  }

  write(state: AuditState): void {
    const path = join(this.path, 'state.json');
    writeFileSync(`${path}.new`, JSON.stringify(state), { mode: 0o600 });
    renameSync(`${path}.new`, path);
  }

  /** Removes all files but the lock. */
  empty(): void {
    this.remove();
    mkdirSync(this.path, { recursive: true, mode: 0o700 });
    this.#lock();
  }

  remove(): void {
    rmSync(this.path, { recursive: true, force: true });
  }

  /** Another process may go on with what is in it. Without anything, it is removed. */
  release(): void {
    rmSync(join(this.path, 'process'), { force: true });
    if (existsSync(this.path) && readdirSync(this.path).length === 0) this.remove();
  }

  /** @throws {Refused} while another process works in the folder */
  #lock(): void {
    const path = join(this.path, 'process');
    const holder = numberIn(path);
    if (holder !== process.pid && isRunning(holder)) {
      throw new Refused(`Another audit of this database is running, as process ${holder}: wait for it.`);
    }
    writeFileSync(path, String(process.pid), { mode: 0o600 });
  }
}

function numberIn(path: string): number {
  try {
    return Number(readFileSync(path, 'utf8')) || 0;
  } catch {
    return 0;
  }
}

function isRunning(pid: number): boolean {
  if (pid === 0) return false;
  try {
    process.kill(pid, 0);
    return true;
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === 'EPERM';
  }
}
