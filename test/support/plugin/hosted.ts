import type { LookupService } from '@bsv/overlay'
import type { Knex } from 'knex'
import type { SubmitMode } from '../../../backend/src/graph/overlay-interfaces.js'
import { type BeefContents, readBeef } from '../../../backend/src/graph/read-beef.js'
import type { Awaitable } from '../../../backend/src/graph/yield-to-event-loop.js'
import { engineOn } from '../../../backend/src/host/engine-tables.js'
import { type HostOptions, hostedIndex } from '../../../backend/src/host/hosted-index.js'
import createNamesLookupService from '../../../backend/src/lookup-services/NamesLookupServiceFactory.js'
import createOrdinalsLookupService from '../../../backend/src/lookup-services/OrdinalsLookupServiceFactory.js'
import { messageOf } from '../../../backend/src/protocol/coded-error.js'
import type { Deployment } from '../../../backend/src/protocol/mint.js'
import type { FactStore } from '../../../backend/src/read/fact-store.js'
import NamesTopicManager from '../../../backend/src/topic-managers/NamesTopicManager.js'
import OrdinalsTopicManager from '../../../backend/src/topic-managers/OrdinalsTopicManager.js'
import { atomicOf } from '../protocol/fake-chain.js'
import { openSqlite } from '../storage/sqlite-database.js'

/** How often a question is asked while the index is being opened, which may take long on a busy machine. */
const TRIES = 40

/** Asks as a client that tries again: an index that is not open after some seconds says so. */
export async function untilOpen<Answer>(ask: () => Awaitable<Answer>): Promise<Answer> {
  for (let tries = 1; ; tries++) {
    try {
      return await ask()
    } catch (error) {
      if (tries === TRIES || !messageOf(error).includes('the database does not respond')) throw error
    }
  }
}

const TABLES = [
  'create table outputs (id integer primary key, txid text, outputIndex integer, topic text, satoshis integer)',
  'create table transactions (id integer primary key, txid text unique, beef blob)',
  'create table applied_transactions (id integer primary key, txid text, topic text)',
]

/** A host's database in a folder, which outlives its processes, with the tables of an engine. */
export class HostedDatabase {
  /** Called with each statement before it is asked: what it throws, the database says. */
  watch: (sql: string) => void = () => {}
  private constructor(private readonly opened: Awaited<ReturnType<typeof openSqlite>>) {}

  /** @param isKnown Whether the engine's storage can be read. */
  static async open(folder: string, { isKnown = true } = {}): Promise<HostedDatabase> {
    const database = new HostedDatabase(await openSqlite(folder))
    if (isKnown) for (const sql of TABLES) await database.run(sql)
    return database
  }

  /** What another process gets of it. */
  connection(): Knex {
    const { writer } = this.opened
    return {
      client: writer.client,
      raw: async (sql: string, values: Knex.RawBinding[]) => {
        this.watch(sql)
        return await writer.raw(sql, values)
      },
    } as unknown as Knex
  }

  async run(sql: string, values: (string | number | Buffer)[] = []): Promise<void> {
    await this.opened.writer.raw(sql, values)
  }

  async count(sql: string): Promise<number> {
    const [row] = await this.opened.writer.raw(sql)
    return Number(Object.values(row as object)[0])
  }

  /** As an engine that has applied a transaction, and admitted nothing of it. */
  async apply(txid: string, topic = 'tm_ordinals'): Promise<void> {
    await this.run('insert into applied_transactions (txid, topic) values (?, ?)', [txid, topic])
  }

  /** As an engine that has stored an output, before it calls a hook. */
  async admit(
    txid: string,
    { vout = 0, topic = 'tm_names', id }: { vout?: number; topic?: string; id?: number },
  ) {
    await this.run('insert into outputs (id, txid, outputIndex, topic) values (?, ?, ?, ?)', [
      ...[id ?? (await this.count('select ifnull(max(id), 0) + 1 from outputs')), txid, vout, topic],
    ])
  }

  async keep(txid: string, beef: Uint8Array): Promise<void> {
    await this.run('insert or ignore into transactions (txid, beef) values (?, ?)', [txid, Buffer.from(beef)])
  }

  close(): Promise<void> {
    return this.opened.close()
  }
}

/** A process of a host: the plugin's parts over its database, called as an engine calls them. */
export class HostedProcess {
  readonly failures: unknown[] = []
  readonly names: LookupService & { close(): Promise<void> }
  readonly ordinals: LookupService & { close(): Promise<void> }
  readonly store: FactStore
  private readonly managers

  constructor(
    database: HostedDatabase,
    { deployment, ...options }: { deployment: Deployment } & HostOptions,
  ) {
    const connection = database.connection()
    const onFailure = (error: unknown): void => void this.failures.push(error)
    const services = { ...options, onFailure } as object
    this.names = createNamesLookupService(connection, { deployment, ...services }).service as never
    this.ordinals = createOrdinalsLookupService(connection, services).service as never
    const { store } = hostedIndex(connection, { openEngine: engineOn(connection) })
    this.store = store
    this.managers = [new NamesTopicManager({ deployment, store }), new OrdinalsTopicManager({ store })]
  }

  /** As an engine that asks about a transaction. Returns what both topics admit. */
  async ask(beef: Uint8Array, context = {}, mode: SubmitMode = 'current-tx'): Promise<number[][]> {
    const bytes = Array.from(beef)
    return await Promise.all(
      this.managers.map(
        async (manager) =>
          (await manager.identifyAdmissibleOutputs(bytes, [], undefined, mode, context)).outputsToAdmit,
      ),
    )
  }

  /** As an engine that has verified and stored a transaction, and calls a hook. */
  async hook(beef: Uint8Array): Promise<void> {
    const atomicBEEF = Array.from(beef)
    const notice = { mode: 'whole-tx' as const, atomicBEEF, outputIndex: 0 }
    await this.names.outputAdmittedByTopic({ ...notice, topic: 'tm_names' })
    await this.ordinals.outputAdmittedByTopic({ ...notice, topic: 'tm_ordinals' })
  }

  /** As an engine that is not to bring the transaction: it has stored that before. */
  async hookOf(txid: string): Promise<void> {
    const notice = { mode: 'locking-script', txid, outputIndex: 0, topic: 'tm_ordinals' } as never
    await this.ordinals.outputAdmittedByTopic(notice)
  }

  /** As an engine that has verified what spends an output, and may still refuse it. */
  async spentBy(spendingTxid: string, beef?: Uint8Array): Promise<void> {
    const output = { txid: '', outputIndex: 0, topic: 'tm_ordinals' }
    const spending =
      beef === undefined
        ? { mode: 'txid', spendingTxid }
        : { mode: 'whole-tx', spendingAtomicBEEF: Array.from(atomicOf(spendingTxid, beef)) }
    await this.ordinals.outputSpent?.({ ...output, ...spending } as never)
  }

  async submit(beef: Uint8Array): Promise<BeefContents> {
    await this.ask(beef)
    await this.hook(beef)
    return readBeef(beef)
  }

  async found(service: 'names' | 'ordinals', query: unknown): Promise<string[]> {
    const answer = await untilOpen(() => this[service].lookup({ service: `ls_${service}`, query }))
    return (answer as { txid: string; outputIndex: number }[]).map(
      ({ txid, outputIndex }) => `${txid}_${outputIndex}`,
    )
  }

  /** Ends it: as the end of a process, it frees the lock of its folder, and brings nothing to the database. */
  async end(): Promise<void> {
    await this.names.close()
    await this.ordinals.close()
  }
}
