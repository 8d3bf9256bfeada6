import type { MissingAncestors } from '../gateway/http/pending-origins.js'

/** The parts of an engine, of any version, that are used. */
export interface HostEngine {
  /** By topic name. */
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

/** A logger like that of pino, of any version. */
export interface FollowerLogger {
  debug(about: object, message: string): void
  info(about: object, message: string): void
  warn(about: object, message: string): void
  error(about: object, message: string): void
}

export interface FollowerOptions {
  /** Settings of our server, by their names in `docs/settings.md`; the environment by default. */
  settings?: Readonly<Record<string, string | undefined>>
  /** The host's engine, so that its `/lookup` has the follower's finds. Without it, only the gateway's routes do. */
  engine?: HostEngine | undefined
  /** The host's own chain tracker, which then decides which proofs count; by default, the one in `CHAIN_TRACKER`. */
  chainTracker?: HostTracker | 'scripts only' | undefined
  /** Logs what the follower does; standard output in JSON by default. */
  logger?: FollowerLogger
}

/** The follower in a host; pass it to `attachGateway`. */
export interface HostFollower {
  /** How far it has followed (`docs/follow.md`, Absence). */
  readonly progress: {
    readonly asOf: { height: number; hash?: string | undefined } | undefined
    readonly isCatchingUp: boolean
    readonly isIncomplete: boolean
    progress(): { height?: number; chainHeight?: number; asked?: number; coins?: number }
  }
  readonly ancestors: MissingAncestors
  readonly asksNetwork: true
  status(): FollowerStatus
  /** The part of the status that pages show. */
  chain(): { height?: number; lag?: number }
  /** Stops following; another process that shares the database takes over. Resolves when the store is no longer in use. */
  stop(): Promise<void>
}

/** The state of the follower, with the parts of the chain in our server's `/health`, except those that another process runs. */
export interface FollowerStatus {
  /** `waiting`: another process that shares the database follows. */
  state: 'starting' | 'following' | 'waiting' | 'failed' | 'stopped'
  /** Why it is not following. */
  reason?: string
  /** The height of the chain, and how many of its blocks have not been followed yet. */
  height?: number
  lag?: number
  [part: string]: unknown
}
