export type LocalStackErrorCode =
  | 'JAVA_MISSING'
  | 'JAVA_TOO_OLD'
  | 'MAVEN_MISSING'
  | 'MAVEN_FAILED'
  | 'DATA_FOLDER_IN_USE'
  | 'PORT_TAKEN'
  | 'ENGINE_EXITED'
  | 'ENGINE_NOT_READY'
  | 'ENGINE_UNAVAILABLE'
  | 'REPLICATION_UNKNOWN';

/** Why a local engine cannot run, in one sentence that says what to do, with a `code` to branch on. */
export class LocalStackError extends Error {
  readonly code: LocalStackErrorCode;

  constructor(code: LocalStackErrorCode, message: string, options?: ErrorOptions) {
    super(message, options);
    this.name = 'LocalStackError';
    this.code = code;
  }
}

/** The `code` of a Node.js system error (`ENOENT`, `EADDRINUSE`, …), or undefined. */
export function systemErrorCode(error: unknown): string | undefined {
  if (error instanceof Error && 'code' in error && typeof error.code === 'string') return error.code;
  return undefined;
}
