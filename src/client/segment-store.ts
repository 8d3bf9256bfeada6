import { Resting } from './resting.js'

/**
 * A store for verified parts of trees, so that later resolutions fetch and verify only what is new. Each segment is a short text
 * under a key of `a-z`, `0-9`, `_`, `-` and one `/`. The client writes only what it has verified, and treats what it cannot read,
 * or did not write, as absent.
 *
 * Anyone who can write to a store can forge names: it must be as safe as the program that uses it.
 */
export interface SegmentStore {
  /** The last text that was put under a key; undefined if there is none. A rejection counts as none. */
  get(key: string): Promise<string | undefined>
  /** Puts a text under a key, replacing an earlier one. A rejection is ignored: the segment is verified again next time. */
  put(key: string, segment: string): Promise<void>
}

/** How long to wait for a store, in milliseconds; in several turns, so that it is not blamed for a suspended program. */
const PATIENCE = 2000
const TURNS = 20

/** Stores that did not answer. */
const resting = /* @__PURE__ */ new Resting<SegmentStore>()

/**
 * Asks a store, which may never answer: a browser's database can be blocked by another page.
 *
 * @throws what the store throws; Error if it takes too long, and at once for a minute after that.
 */
export async function askStore<Result>(store: SegmentStore, ask: () => Promise<Result>): Promise<Result> {
  if (resting.has(store)) throw new Error('the store has not answered lately')
  let timer: ReturnType<typeof setTimeout> | undefined
  const late = new Promise<never>((_, reject) => {
    let left = TURNS
    const wait = (): void => {
      if (left-- > 0) {
        timer = setTimeout(wait, PATIENCE / TURNS)
        return
      }
      resting.add(store)
      reject(new Error(`the store took longer than ${PATIENCE} ms`))
    }
    wait()
  })
  try {
    return await Promise.race([ask(), late])
  } finally {
    clearTimeout(timer)
  }
}

/** More segments than a tree of 14,000 names has. */
const DEFAULT_MAX_SEGMENTS = 20_000

/** Keeps segments while the program runs. */
export class MemorySegmentStore implements SegmentStore {
  private readonly segments: RecentMap<string>

  /** @param options.maxSegments The most segments to keep; the least recently used ones are dropped. 20,000 by default. */
  constructor({ maxSegments = DEFAULT_MAX_SEGMENTS }: { maxSegments?: number } = {}) {
    this.segments = new RecentMap(maxSegments)
  }

  async get(key: string): Promise<string | undefined> {
    return this.segments.get(key)
  }

  async put(key: string, segment: string): Promise<void> {
    this.segments.set(key, segment)
  }
}

/** A map that drops the least recently used values. */
export class RecentMap<Value> {
  private readonly values = new Map<string, Value>()
  private weight = 0

  /** @param most How much all values together may weigh; by default each weighs 1. */
  constructor(
    private readonly most: number,
    private readonly weightOf: (value: Value) => number = () => 1,
  ) {}

  get(key: string): Value | undefined {
    const value = this.values.get(key)
    if (value !== undefined) this.set(key, value)
    return value
  }

  delete(key: string): void {
    const value = this.values.get(key)
    if (value !== undefined && this.values.delete(key)) this.weight -= this.weightOf(value)
  }

  set(key: string, value: Value): void {
    this.delete(key)
    this.values.set(key, value)
    this.weight += this.weightOf(value)
    for (const oldest of this.values.keys()) {
      if (this.weight <= this.most) return
      this.delete(oldest)
    }
  }
}

/** The part of IndexedDB that is used here: its types come with those of browsers. */
interface IdbRequest<Result> {
  result: Result
  error: unknown
  onsuccess: (() => void) | null
  onerror: (() => void) | null
}
interface IdbObjects {
  get(key: string): IdbRequest<unknown>
  put(value: string, key: string): IdbRequest<unknown>
}
interface IdbDatabase {
  createObjectStore(name: string): unknown
  transaction(name: string, mode: 'readonly' | 'readwrite'): { objectStore(name: string): IdbObjects }
  close(): void
  onversionchange: (() => void) | null
}
interface IdbHost {
  indexedDB?: {
    open(
      name: string,
      version: number,
    ): IdbRequest<IdbDatabase> & { onupgradeneeded: (() => void) | null; onblocked: (() => void) | null }
  }
}

const OBJECTS = 'segments'

/** Keeps segments in a database of the page's origin, for as long as the browser keeps the database. */
export class IndexedDbSegmentStore implements SegmentStore {
  private database: Promise<IdbDatabase> | undefined

  /** @param options.name The name of the database; `minetree-segments` by default. */
  constructor(private readonly options: { name?: string } = {}) {}

  async get(key: string): Promise<string | undefined> {
    const database = await this.open()
    const found = await resultOf(database.transaction(OBJECTS, 'readonly').objectStore(OBJECTS).get(key))
    return typeof found === 'string' ? found : undefined
  }

  async put(key: string, segment: string): Promise<void> {
    const database = await this.open()
    await resultOf(database.transaction(OBJECTS, 'readwrite').objectStore(OBJECTS).put(segment, key))
  }

  private async open(): Promise<IdbDatabase> {
    this.database ??= this.opened().catch((error: unknown) => {
      this.database = undefined
      throw error
    })
    return await this.database
  }

  private async opened(): Promise<IdbDatabase> {
    const { indexedDB } = globalThis as unknown as IdbHost
    if (indexedDB === undefined) throw new Error('there is no IndexedDB here')
    const request = indexedDB.open(this.options.name ?? 'minetree-segments', 1)
    request.onupgradeneeded = () => void request.result.createObjectStore(OBJECTS)
    const database = await resultOf(request)
    // Another page deletes the database, or opens a later version of it.
    database.onversionchange = () => {
      database.close()
      this.database = undefined
    }
    return database
  }
}

async function resultOf<Result>(request: IdbRequest<Result>): Promise<Result> {
  return await new Promise((resolve, reject) => {
    request.onsuccess = () => resolve(request.result)
    request.onerror = () => reject(request.error)
  })
}
