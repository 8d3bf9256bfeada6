import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { Sql } from '../../backend/src/facts/connection.js'
import { LocalLog } from '../../backend/src/facts/local-log.js'
import { FACT, PROOF_ROOT } from '../../backend/src/facts/log.js'
import { register } from '../../backend/src/facts/registers.js'
import type { AdmissionOptions } from '../../backend/src/graph/admission-rules.js'
import type { SightingRecord } from '../../backend/src/graph/conflict-resolution.js'
import { canonicalRows } from '../../backend/src/index/canonical.js'
import { registerIn } from '../../backend/src/index/schema.js'
import type { ProofTracker } from '../../backend/src/index/transactions.js'
import { HEADER_BYTES } from '../../backend/src/protocol/block-header.js'
import { equalBytes, fromHex, joinBytes, toHex } from '../../backend/src/protocol/bytes.js'
import { parseOutpoint } from '../../backend/src/protocol/outpoint.js'
import { FactStore } from '../../backend/src/read/fact-store.js'
import { Reader } from '../../backend/src/read/reader.js'
import { applyNext, openIndex } from '../../backend/src/writer/catch-up.js'
import { LocalWriter, storeFiles } from '../../backend/src/writer/local-writer.js'
import { SharedWriter } from '../../backend/src/writer/shared-writer.js'
import { ReorgMonitor } from '../../src/chain/tracker/reorg-monitor.js'
import { createApp } from '../../src/server/app.js'
import { Bodies } from '../../src/server/cache/bodies.js'
import { Responses } from '../../src/server/cache/responses.js'
import type { Config } from '../../src/server/config/config.js'
import { admissionOptions } from '../../src/server/store/admission-options.js'
import { removeIndexes } from '../../src/server/store/facts/folder.js'
import { writeSetting } from '../../src/server/store/facts/log-settings.js'
import { prune } from '../../src/server/store/facts/prune.js'
import { purge } from '../../src/server/store/facts/purge.js'
import { createOverlay, type Overlay } from '../../src/server/writer/overlay.js'
import { listening } from '../support/server/connections.js'
import { type Header, HeaderChain } from '../support/server/header-chain.js'
import { SILENT } from '../support/server/test-server.js'
import { type ChainRoots, configOf, HeadersOfChain } from './chain-roots.js'
import { comparePorts } from './compare-ports.js'
import type { Proof } from './decision.js'
import type { History, Shape } from './history.js'
import { ask, type Differences, Host } from './host.js'
import type { Model } from './model.js'
import { differencesOf } from './questions.js'

/** Of the answers and of the bodies in memory, in bytes. */
const MAX_CACHED = 1024 * 1024
/** When nobody has seen anything for a long time. */
const FAR = 2 ** 43

interface Running {
  url: string
  writer: LocalWriter
  reader: Reader
  graph: FactStore
  overlay: Overlay
  monitor: ReorgMonitor
  close(): Promise<void>
}

/**
 * The parts of a server in this process, for one history after the other, each in files of
 * its own. It learns of changes to the chain only when it is asked to follow.
 */
export class FactsHost extends Host {
  private readonly headers = new HeadersOfChain()
  private folder = ''
  private refusedTypes: readonly string[] = []
  private decides: ProofTracker = 'tracker'
  private running: Running | undefined

  constructor(
    private readonly shape: Shape,
    private readonly first: ProofTracker = 'tracker',
    private readonly openWriter = async (folder: string): Promise<LocalWriter> => new LocalWriter({ folder }),
  ) {
    super()
  }

  override get tracker(): ProofTracker {
    return this.decides
  }

  get url(): string {
    return this.parts.url
  }

  /** Its files. */
  get dataDir(): string {
    return this.folder
  }

  /** Starts with an empty store, and follows this chain from now on. */
  async clear(chain: ChainRoots): Promise<void> {
    await this.close()
    this.headers.chain = chain
    this.refusedTypes = this.shape.refusedTypes ?? []
    this.decides = this.first
    this.folder = await mkdtemp(join(tmpdir(), 'minetree-facts-'))
    await this.start()
    await this.chainChanged()
    // The first round, as a server makes it when it starts: the next one knows from which tip on.
    await this.follow()
  }

  /** Stores the headers that the chain has got, and those of another branch in place of its own. */
  override async chainChanged(): Promise<void> {
    const { chain } = this.headers
    if (this.tracker !== 'headers' || !(chain instanceof HeaderChain)) return
    const { headers } = this.parts.graph
    const [lowest] = [...chain.branch.blocks()].reverse()
    // The first that are stored end with a checkpoint, which all other branches contain.
    if (lowest !== undefined && (await headers.range()) === undefined) {
      const { height, bytes } = lowest.header
      await headers.replaceFrom({ height, headers: bytes, tip: undefined })
    }
    const range = await headers.range()
    const stored = range && (await headers.read({ from: range.from, count: range.to - range.from + 1 }))
    const own = [...chain.branch.blocks()].reverse().map(({ header }) => header)
    const isStored = ({ height, bytes }: Header): boolean => {
      const at = range === undefined ? -1 : (height - range.from) * HEADER_BYTES
      return stored !== undefined && at >= 0 && equalBytes(stored.subarray(at, at + HEADER_BYTES), bytes)
    }
    const fresh = own.slice(own.findIndex((header) => !isStored(header)))
    const [first] = fresh
    if (first === undefined || own.every(isStored)) return
    const change = { height: first.height, headers: joinBytes(fresh.map(({ bytes }) => bytes)) }
    if (!(await headers.replaceFrom({ ...change, tip: stored?.slice(-HEADER_BYTES) })))
      throw new Error('the headers of the chain were not taken')
  }

  /** Starts on files that another host left behind. They are deleted when it is closed. */
  async openOn(folder: string, chain: ChainRoots): Promise<void> {
    await this.close()
    this.headers.chain = chain
    this.folder = folder
    await this.start()
  }

  /** What is kept of these transactions, wherever. */
  async kept(txids: Iterable<string>): Promise<string[]> {
    const { transactions } = this.parts.graph
    const kept: string[] = []
    for (const txid of txids) if ((await transactions.get(txid)) !== undefined) kept.push(txid)
    return kept
  }

  /** Has a gateway learn what others have written. */
  override async untilIdle(): Promise<void> {
    const { writer } = this.parts
    if (writer instanceof SharedWriter) await writer.follow()
  }

  override async restart(): Promise<void> {
    await this.parts.close()
    await this.start()
  }

  override async refuseTypes(types: readonly string[]): Promise<void> {
    this.refusedTypes = types
    await this.restart()
  }

  override async decideBy(tracker: ProofTracker): Promise<void> {
    await this.parts.close()
    await writeSetting({ folder: this.folder }, { name: 'tracker', value: tracker })
    this.decides = tracker
    await this.start()
    await this.chainChanged()
  }

  override async prune(): Promise<number> {
    await this.parts.close()
    const { config } = this
    const signal = new AbortController().signal
    const { transactions } = await prune({ config, signal, keepsNames: false, now: FAR })
    await this.start()
    return transactions
  }

  /**
   * Purges a text from the log. @returns What is wrong then: bytes that are still there, outputs that still show it, and an index that is
   * not that of a rebuild; undefined where the log had no such text.
   */
  async purge(text: Uint8Array, { transactions }: History): Promise<Differences | undefined> {
    const holders = transactions.flatMap(({ said, outpoint }) =>
      said.flatMap(({ content }, vout) => (content && equalBytes(content.body, text) ? outpoint(vout) : [])),
    )
    const inLog = this.placesInLog()
    const one = holders.find((each) => inLog.has(each.slice(0, 64)))
    if (one === undefined) return undefined
    await this.parts.close()
    await purge({ folder: this.folder }, [parseOutpoint(one)], 'a test')
    await this.start()
    const bodies = this.reading((sql) => sql.all('select body from log.log where kind = ?', FACT.transaction))
    const still: string[] = []
    for (const each of holders)
      if ((await ask(this.url, { path: `/content/${each}` })).status === 200) still.push(each)
    const got = { left: bodies.filter(({ body }) => body.includes(text)).length, still }
    return { ...differencesOf(got, { left: 0, still: [] }), ...this.rebuiltDifferences() }
  }

  /** Restarts without an index, which is derived from the log after something has happened. */
  async loseIndex(meanwhile: () => Promise<void>): Promise<void> {
    await this.parts.close()
    removeIndexes(this.folder)
    await this.start(meanwhile)
  }

  override async follow(): Promise<void> {
    if (this.tracker !== 'scripts-only') await this.parts.monitor.round()
  }

  override async sight(record: SightingRecord): Promise<boolean> {
    await this.parts.graph.sightings.record([record])
    return true
  }

  override async release(): Promise<void> {
    const { releaseNonFinal } = this.parts.overlay.engine
    while ((await releaseNonFinal()) > 0) {
      // A round takes some of them.
    }
  }

  override async fateOf(txid: string, { height, root }: Proof): Promise<'held' | 'gone' | 'refused'> {
    return this.reading((sql) => {
      if (registerIn(sql, register.verdict({ height, root })) === false) return 'refused'
      const block = [height, fromHex(root)]
      const ofPending = 'select 1 from log.pending_proof where txid = ? and height = ? and root = ?'
      if (sql.get('select 1 from log.pending where txid = ?', fromHex(txid)) !== undefined)
        return sql.get(ofPending, fromHex(txid), ...block) ? 'held' : 'gone'
      // What entered the log after its block was refused has none there.
      const held = `select 1 from proof join tx on tx.id = tid join log.log as log on log.seq = proof.seq
        where txid = ? and height = ? and ${PROOF_ROOT} = ?`
      return sql.get(held, fromHex(txid), ...block) ? 'held' : 'gone'
    })
  }

  override placesInLog(): ReadonlyMap<string, number> {
    const rows = this.reading((sql) =>
      sql.all('select seq, key from log.log where kind = ?', FACT.transaction),
    )
    return new Map(rows.map(({ seq, key }) => [toHex(key), seq]))
  }

  /** What the index holds other than the model says. */
  override async storedDifferences(model: Model): Promise<Differences> {
    const { history, answers } = model
    const { graph } = this.parts
    const { counts } = answers.decision
    const got = this.reading(storedRows)
    // The index has nothing of what is pending.
    const pending = new Set(this.reading((sql) => sql.all(PENDING)).map(({ txid }) => toHex(txid)))
    const at = (outpoint: string): string => `${outpoint.slice(0, 64)} ${outpoint.slice(65)}`
    const expected: Record<string, unknown> = {
      spends: [...counts]
        .filter((txid) => !pending.has(txid))
        .flatMap((txid) => (history.byTxid.get(txid)?.spends ?? []).map((spent) => `${at(spent)} ${txid}`))
        .sort(),
      outputs: [...answers.held].map(at).sort(),
      nodes: [...answers.nodes].map(([outpoint, domain]) => `${at(outpoint)} ${domain}`).sort(),
      names: [...answers.origins].map(([outpoint, name]) => `${at(outpoint)} ${name}`).sort(),
      held: model
        .finalAt(Number.POSITIVE_INFINITY)
        .map(({ txid }) => txid)
        .sort(),
      // Whatever any model says.
      ...{ 'second origins': [], 'second live nodes': [] },
    }
    // Of two that are pending, it is decided which one counts once somebody needs to know.
    await comparePorts({ graph, model }, { got, expected }, { isUndecided: (txid) => pending.has(txid) })
    return differencesOf(got, expected)
  }

  /** How many transactions are pending, those that lost included, and how many submissions are not final. */
  waiting(): { pending: number; held: number } {
    const count = (table: string): number =>
      this.reading((sql) => Number(sql.get(`select count(*) as count from log.${table}`)?.count))
    return { pending: count('pending'), held: count('held') }
  }

  /** Where the index is not that which its log gives when it is derived again. */
  rebuiltDifferences(): Differences {
    return rebuiltDifferences(this.folder, admissionOptions(configOf(this.shape, this.folder)))
  }

  async close(): Promise<void> {
    await this.running?.close()
    this.running = undefined
    if (this.folder !== '') await rm(this.folder, { recursive: true, force: true })
  }

  private get config(): Config {
    return configOf({ ...this.shape, refusedTypes: this.refusedTypes }, this.folder)
  }

  private get parts(): Running {
    if (this.running === undefined) throw new Error('the host is not running')
    return this.running
  }

  private reading<Result>(read: (sql: Sql) => Result): Result {
    return this.parts.reader.answer(read)
  }

  /** @param beforeIndex Happens when it listens, before its index follows from the log. */
  private async start(beforeIndex?: () => Promise<void>): Promise<void> {
    const { headers, config } = this
    const writer = await this.openWriter(this.folder)
    await writer.setting('tracker', this.tracker)
    const reader = new Reader(storeFiles(this.folder), writer)
    const [answers, bodies] = [new Responses(reader, MAX_CACHED), new Bodies(MAX_CACHED)]
    const graph = new FactStore({ reader, writer, answers, bodies })
    const { held } = graph
    const asked = this.tracker === 'scripts-only' ? undefined : headers
    const overlay = createOverlay({ config, graph, held, headers: asked, logger: SILENT })
    const monitor = new ReorgMonitor({
      ...{ headers, proofs: overlay.proofs, graph },
      runLocked: (write) => overlay.engine.writes.run(write),
      reorgDepth: config.reorgDepth,
      pollInterval: 0,
      logger: SILENT,
    })
    const index = () =>
      ({ state: writer.status.state === 'equal' ? 'equal' : 'rebuilding', done: 1 }) as const
    const app = createApp({ config, overlay, graph, index, ping: () => graph.ping(), logger: SILENT })
    const server = await listening(app)
    this.running = {
      ...{ url: server.url, writer, reader, graph, overlay, monitor },
      async close() {
        await server.close()
        await overlay.close()
        await writer.close()
        reader.close()
      },
    }
    await beforeIndex?.()
    writer.deriveBy(admissionOptions(config))
    await writer.opened
    // What waits was queued to be tried again before.
    await writer.setting('tracker', this.tracker)
  }
}

/** What stands in the index as active. */
function storedRows(sql: Sql): Record<string, unknown> {
  const rows = (statement: string): string[] =>
    sql
      .all(statement)
      .map((row) =>
        Object.values(row)
          .map((value) => (Buffer.isBuffer(value) ? toHex(value) : value))
          .join(' '),
      )
      .sort()
  return {
    spends: rows(
      `select spent.txid, spend.vout, spender.txid as spender from spend join tx spent on spent.id = spend.pid
         join tx spender on spender.id = spend.sid where spender.active = 1 and spender.seq is not null`,
    ),
    outputs: rows(
      'select tx.txid, out.vout from out join tx on tx.id = out.tid where out.carrier = 0 and out.active = 1',
    ),
    nodes: rows(
      'select tx.txid, node.vout, node.domain from node join tx on tx.id = node.tid where node.active = 1',
    ),
    names: rows(
      'select tx.txid, name.vout, name.name from name join tx on tx.id = name.tid where name.active = 1',
    ),
    held: rows('select txid from log.held'),
    'second origins': rows('select name from name where active = 1 group by name having count(*) > 1'),
    'second live nodes': rows(
      `select domain from node where active = 1 and not exists (
         select 1 from spend join tx on tx.id = spend.sid
         where spend.pid = node.tid and spend.vout = node.vout and tx.active = 1 and tx.mint = 1
       ) group by domain having count(*) > 1`,
    ),
  }
}

/** What is pending and did not lose. */
const PENDING = 'select txid from log.pending where waiting = 0'

/** Derives an index again from the log in a folder, in memory, and compares it with that in the folder. */
export function rebuiltDifferences(folder: string, { rules }: AdmissionOptions): Differences {
  const files = storeFiles(folder)
  const [logFile, indexFile, memory] = [new Sql(files.log), new Sql(files.index), new Sql(':memory:')]
  try {
    const log = new LocalLog(logFile)
    const rebuilt = openIndex({ log, indexFile: memory }, { rules })
    while (applyNext({ log, indexFile: memory }, rebuilt)) {
      // A page after the other.
    }
    return differencesOf(canonicalRows(indexFile, { scores: true }), canonicalRows(memory, { scores: true }))
  } finally {
    for (const sql of [logFile, indexFile, memory]) sql.close()
  }
}
