import type { MissingAncestors } from '../gateway/http/pending-origins.js'

/** What is used of an engine of any version. */
export interface HostEngine {
  /** By the names of topics. */
  readonly managers: object
  submit(
    tagged: { beef: number[]; topics: string[] },
    onSteakReady?: undefined,
    mode?: 'historical-tx',
  ): Promise<unknown>
}

/** A chain tracker of any copy of the SDK. */
export interface HostTracker {
  isValidRootForHeight(root: string, height: number): Promise<boolean>
  currentHeight(): Promise<number>
}

/** A logger as that of pino, of any version. */
export interface FollowerLogger {
  debug(about: object, message: string): void
  info(about: object, message: string): void
  warn(about: object, message: string): void
  error(about: object, message: string): void
}

export interface FollowerOptions {
  /** Settings of our server, by their names in `docs/settings.md`; the environment by default. */
  settings?: Readonly<Record<string, string | undefined>>
  /** The host's engine, whose `/lookup` is to answer with what is found. Without it, only the gateway's routes do. */
  engine?: HostEngine | undefined
  /** The host's own chain tracker, which then decides which proofs count; by default, what `CHAIN_TRACKER` says: `headers`. */
  chainTracker?: HostTracker | 'scripts only' | undefined
  /** Logs what the follower does; standard output in JSON by default. */
  logger?: FollowerLogger
}

/** What follows the chain in a host; `attachGateway` takes it. */
export interface HostFollower {
  /** How far it is (`docs/follow.md`, Absence). */
  readonly progress: {
    readonly asOf: { height: number; hash?: string | undefined } | undefined
    readonly isCatchingUp: boolean
    readonly isIncomplete: boolean
    progress(): { height?: number; chainHeight?: number; asked?: number; coins?: number }
  }
  readonly ancestors: MissingAncestors
  readonly asksNetwork: true
  status(): FollowerStatus
  /** Of that, what pages show. */
  chain(): { height?: number; lag?: number }
  /** Stops following; another process that shares the database goes on. Resolves when the store is no longer used. */
  stop(): Promise<void>
}

/** What it does, with the parts of the chain that `/health` of our server has. Parts that another process runs are missing. */
export interface FollowerStatus {
  /** `waiting`: another process that shares the database follows. */
  state: 'starting' | 'following' | 'waiting' | 'failed' | 'stopped'
  /** Why it does not follow yet, or does not follow. */
  reason?: string
  /** The height of the chain, and how many of its blocks were not followed yet. */
  height?: number
  lag?: number
  [part: string]: unknown
}
