/** Memory that requests may hold together: each reserves its share before its body is read. */
export interface MemoryBudget {
  /** Takes `bytes` if they are free. */
  reserve(bytes: number): boolean;
  release(bytes: number): void;
  readonly reservedBytes: number;
}

export function createMemoryBudget(bytesMax: number): MemoryBudget {
  let reserved = 0;
  return {
    reserve(bytes) {
      if (reserved + bytes > bytesMax) return false;
      reserved += bytes;
      return true;
    },
    release(bytes) {
      reserved -= bytes;
    },
    get reservedBytes() {
      return reserved;
    },
  };
}
