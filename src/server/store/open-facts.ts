import type { MessagePort } from 'node:worker_threads'
import type { Logger } from 'pino'
import { removeDatabase } from '../../../backend/src/facts/folder.js'
import type { AncestorQueue } from '../../../backend/src/graph/ancestor-queue.js'
import type { Proof } from '../../../backend/src/graph/records.js'
import { FactStore } from '../../../backend/src/read/fact-store.js'
import { Reader } from '../../../backend/src/read/reader.js'
import { storeFiles } from '../../../backend/src/writer/local-writer.js'
import { passedProof } from '../../../backend/src/writer/shared-state.js'
import { Bodies } from '../cache/bodies.js'
import { Responses } from '../cache/responses.js'
import type { Config } from '../config/config.js'
import { storeFolder } from '../config/place.js'
import { damageOf, lockFolder } from './facts/folder.js'
import { NodeIndex } from './index-status.js'
import { pinTracker } from './pinned-genesis.js'
import { type StartedWriter, startWriter } from './start-writer.js'

/** The exit code of a process whose store cannot be opened (`docs/cli.md`). */
const ENDED = 5

const CURSOR = 'select cursor from counts where id = 1'

export interface OpenFactsOptions {
  onReorg: (transactions: number) => void
  logger: Logger
  /** The compiled `writer-worker`; without it, the writer is in this thread. */
  writerThread?: URL | undefined
}

/** Jobs that one of the gateways sharing a log does for all: follow the chain, and sync with peers. */
export type Job = 'follow' | 'sync'

export interface Jobs {
  /** Has this gateway do jobs while no other one does. */
  seek(jobs: readonly Job[]): void
  isMine(job: Job): boolean
  /** See `ArcIngestOptions`. */
  passOn(txid: string, proof: Proof): Promise<void>
}

export interface Stores {
  /** Caches answers and bodies in memory. */
  graph: FactStore
  /** The same store as `graph`, without caches. */
  store: FactStore
  caches: Readonly<Record<'answers' | 'bodies', Readonly<{ hits: number; misses: number }>>>
  index: NodeIndex
  held: FactStore['held']
  ancestors: AncestorQueue
  /** Whether other processes may write to the log, too. */
  isShared: boolean
  /** Resolves when the store can be read: a shared log is copied first. */
  logRead: Promise<void>
  /** The jobs that gateways do for each other; undefined if the log is not shared. */
  jobs: Jobs | undefined
  /** How far the index has come in a shared log; undefined if it is not shared. */
  position: (() => number) | undefined
  /**
   * Derives admissions from now on by the rules in these settings.
   *
   * @throws ConfigError if the store was derived by others.
   */
  deriveBy(config: Config): Promise<void>
  /** A port through which another thread of this process writes; undefined if the writer is in this thread. */
  shareWriter(): MessagePort | undefined
  close(): Promise<void>
}

/**
 * Opens the store of facts in the settings.
 *
 * @throws as `lockFolder`; errors of SQLite.
 */
export async function openFacts(
  { dataDir, knexUrl, mongoUrl, limits }: Pick<Config, 'dataDir' | 'knexUrl' | 'mongoUrl' | 'limits'>,
  { onReorg, logger, writerThread }: OpenFactsOptions,
): Promise<Stores> {
  const shared = (knexUrl ?? mongoUrl) === undefined ? undefined : { knexUrl, mongoUrl }
  const folder = storeFolder({ dataDir, knexUrl, mongoUrl })
  const unlock = lockFolder(folder)
  let started: StartedWriter | undefined
  let reader: Reader | undefined
  let index: NodeIndex | undefined
  const close = async (): Promise<void> => {
    await started?.writer.close()
    reader?.close()
    unlock()
  }
  const onEnd = (cause: unknown, { isFinal }: { isFinal: boolean }): void => {
    if (!isFinal) {
      logger.error({ err: cause }, 'the writer thread ended: restarting it')
      index?.start()
      return
    }
    logger.fatal({ err: cause }, 'the writer thread ended again within a minute: exiting')
    process.exit(ENDED)
  }
  try {
    removeDamaged(storeFiles(folder).index, logger)
    started = await startWriter({ folder, shared, worker: writerThread, onEnd })
    const { writer, deriveBy, share } = started
    const reading = new Reader(storeFiles(folder), writer)
    reader = reading
    const store = new FactStore({ reader, writer, onReorg })
    const maxBytes = limits.maxCachedBytes / 2
    const [answers, bodies] = [new Responses(reading, maxBytes), new Bodies(maxBytes)]
    const onBlocked = (): void => bodies.clear()
    const graph = new FactStore({ reader: reading, writer, answers, bodies, onBlocked, onReorg })
    const facts = (): number =>
      Number(reading.answer((sql) => sql.get('select max(seq) as seq from log.log'))?.seq ?? 0)
    const opened = new NodeIndex({ writer, facts, logger })
    index = opened
    return {
      ...{ graph, store, held: store.held, ancestors: store.ancestors, index, close },
      caches: { answers: graph.answersUse, bodies: bodies.use },
      shareWriter: share,
      isShared: shared !== undefined,
      logRead: writer.logRead,
      jobs: shared && {
        seek: (jobs) => void writer.seekJobs(jobs).catch(() => {}),
        isMine: (job) => writer.status.jobs?.includes(job) === true,
        async passOn(txid, proof) {
          const passed = passedProof(txid, proof)
          if (passed !== undefined) await writer.setting(passed.name, passed.value)
        },
      },
      position: shared && (() => Number(reading.answer((sql) => sql.get(CURSOR))?.cursor ?? 0)),
      async deriveBy(config) {
        await pinTracker(store.settings, config)
        deriveBy(config)
        await opened.open()
        const { warning } = writer.status
        if (warning !== undefined) logger.warn(warning)
      },
    }
  } catch (error) {
    await close()
    throw error
  }
}

/** Removes a damaged index, so that it is derived again. */
function removeDamaged(index: string, logger: Logger): void {
  const damage = damageOf(index)
  if (damage === undefined) return
  logger.warn({ index, damage }, 'the index is damaged: deriving it again')
  removeDatabase(index)
}
