import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { Sql } from '../../../backend/src/facts/connection.js'
import { LocalLog } from '../../../backend/src/facts/local-log.js'
import { FACT } from '../../../backend/src/facts/log.js'
import type { SharedLog } from '../../../backend/src/facts/shared-log.js'
import type { AdmissionOptions } from '../../../backend/src/graph/admission-rules.js'
import { admissionRules } from '../../../backend/src/graph/topic-rules.js'
import { canonicalRows } from '../../../backend/src/index/canonical.js'
import { applyNext, openIndex } from '../../../backend/src/writer/catch-up.js'
import { storeFiles } from '../../../backend/src/writer/local-writer.js'
import { SharedWriter } from '../../../backend/src/writer/shared-writer.js'
import { recordOf } from '../protocol/block.js'
import { FakeChain, type FakeTransaction } from '../protocol/fake-chain.js'

/** Longer than any test: gateways follow when they are told. */
const NEVER = 2 ** 30
const PENDING = { maxTransactions: 100, maxBytes: 1024 * 1024 }

export interface Gateway {
  writer: SharedWriter
  folder: string
}

/** Gateways over one log, each with files of its own. */
export class Gateways {
  readonly all: Gateway[] = []

  constructor(
    readonly chain = new FakeChain(),
    private readonly options: Partial<AdmissionOptions> = {},
  ) {}

  get admission(): AdmissionOptions {
    const { deployment } = this.chain
    return {
      rules: admissionRules({ deployment }),
      pending: PENDING,
      ...this.options,
    }
  }

  /** @param own What this one decides otherwise than the others. */
  async add(
    shared: SharedLog,
    folder = mkdtempSync(join(tmpdir(), 'gateway-')),
    own: Partial<AdmissionOptions> = {},
  ): Promise<Gateway> {
    const writer = new SharedWriter({ folder, shared, poll: NEVER })
    writer.deriveBy({ ...this.admission, ...own })
    await writer.opened
    const gateway = { writer, folder }
    this.all.push(gateway)
    return gateway
  }

  /** The index of each gateway, once it has followed, and that of a node alone which is given the same facts. */
  private async indexes(): Promise<Record<string, string[]>[]> {
    await this.followAll()
    return this.all.flatMap(({ folder }) => [indexIn(folder), this.rebuilt(folder)])
  }

  /** Has all gateways follow until none of them writes: what was refused at one, and counts after what others wrote, it writes then. */
  private async followAll(): Promise<void> {
    let before: unknown[] = []
    for (;;) {
      for (const { writer } of this.all) await writer.follow()
      const places = this.all.map(({ folder }) => read(folder, 'select max(seq) as seq from log')[0]?.seq)
      if (places.every((place, at) => place === before[at])) return
      before = places
    }
  }

  /** Expects all gateways to have the index of one that is alone, and the same that is pending. */
  async expectEqual(): Promise<void> {
    const [first, ...others] = await this.indexes()
    for (const other of others) expect(other).toEqual(first)
    const [pending, ...more] = this.pending()
    for (const other of more) expect(other).toEqual(pending)
  }

  /** What is pending at each gateway and counts, in the order in which it came, and what is held. */
  private pending(): string[][] {
    return this.all.map(({ folder }) =>
      [
        ...read(folder, 'select * from pending where waiting = 0 order by arrived'),
        ...read(folder, 'select * from pending_spend where waiting = 0 order by txid, vout, spender'),
        ...read(
          folder,
          'select txid, height, root from pending_proof natural join (select txid from pending where waiting = 0) order by txid, n',
        ),
        ...read(folder, 'select * from held order by txid'),
      ].map(({ arrived, ...row }) => JSON.stringify(row)),
    )
  }

  /** What a gateway has, by txid. */
  found({ folder }: Gateway): Record<'facts' | 'pending' | 'held' | 'active', string[]> {
    const txids = (rows: ReturnType<Sql['all']>): string[] => rows.map(({ txid }) => txid.toString('hex'))
    const index = new Sql(storeFiles(folder).index)
    const active = txids(index.all('select txid from tx where active = 1 and seq is not null'))
    index.close()
    return {
      active,
      facts: txids(read(folder, `select key as txid from log where kind = ${FACT.transaction} order by seq`)),
      pending: txids(read(folder, 'select txid from pending')),
      held: txids(read(folder, 'select txid from held')),
    }
  }

  async close(): Promise<void> {
    for (const { writer, folder } of this.all.splice(0)) {
      await writer.close()
      rmSync(folder, { recursive: true })
    }
  }

  private rebuilt(folder: string): Record<string, string[]> {
    const [logFile, memory] = [new Sql(storeFiles(folder).log), new Sql(':memory:')]
    const files = { log: new LocalLog(logFile), indexFile: memory }
    const index = openIndex(files, this.admission)
    while (applyNext(files, index)) {
      // A page after the other.
    }
    const rows = canonicalRows(memory, { scores: true })
    for (const sql of [logFile, memory]) sql.close()
    return rows
  }
}

/** Submits a transaction with those that it is built on. Returns whether it counts. */
export async function submit({ writer }: Gateway, transactions: FakeTransaction[]): Promise<boolean> {
  const { lost } = await writer.record(
    transactions.map((each) => recordOf(each)),
    { subjects: transactions.slice(0, 1).map(({ txid }) => txid), keepLost: { client: 'aa' } },
  )
  return lost.length === 0
}

/** What a statement finds in the copy of the log of a gateway. */
export function read(folder: string, statement: string): ReturnType<Sql['all']> {
  const sql = new Sql(storeFiles(folder).log)
  const rows = sql.all(statement)
  sql.close()
  return rows
}

/** What the index of a gateway holds, with its scores. */
export function indexIn(folder: string): Record<string, string[]> {
  const sql = new Sql(storeFiles(folder).index)
  try {
    return canonicalRows(sql, { scores: true })
  } finally {
    sql.close()
  }
}
