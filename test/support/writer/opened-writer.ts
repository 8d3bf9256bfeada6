import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { Sql, type SqlValue } from '../../../backend/src/facts/connection.js'
import { FACT } from '../../../backend/src/facts/log.js'
import type { AdmissionOptions } from '../../../backend/src/graph/admission-rules.js'
import type { Reason } from '../../../backend/src/graph/errors.js'
import { admissionRules } from '../../../backend/src/graph/topic-rules.js'
import { LocalWriter, storeFiles } from '../../../backend/src/writer/local-writer.js'
import type { Recorded } from '../../../backend/src/writer/writer.js'
import { recordOf } from '../protocol/block.js'
import { FakeChain, type FakeTransaction } from '../protocol/fake-chain.js'

const PENDING = { maxTransactions: 100, maxBytes: 1024 * 1024 }

/** A writer over files of a test, with a look at what is in them. */
export class OpenedWriter {
  chain = new FakeChain()
  readonly folder = mkdtempSync(join(tmpdir(), 'writer-'))
  writer = new LocalWriter(this)
  private readonly readers: Sql[] = []

  constructor(private readonly options: Partial<AdmissionOptions> = {}) {
    this.writer.deriveBy(this.admission)
  }

  get admission(): AdmissionOptions {
    const { deployment } = this.chain
    return {
      rules: admissionRules({ deployment }),
      pending: PENDING,
      ...this.options,
    }
  }

  /** Closes the writer, lets something happen to its files, and opens another one. */
  async reopen(meanwhile: (files: { log: string; index: string }) => void = () => {}): Promise<void> {
    await this.writer.close()
    this.closeReaders()
    meanwhile(storeFiles(this.folder))
    this.writer = new LocalWriter(this)
    this.writer.deriveBy(this.admission)
    await this.writer.opened
  }

  /** Records transactions as such that nobody submitted. @param height Of the block that proves each. */
  async know(transaction: FakeTransaction, height?: number): Promise<Recorded> {
    return await this.writer.record([recordOf(transaction, height)])
  }

  /** Submits a transaction with those that it is built on. Returns why it is refused. */
  async submit(
    [subject, ...along]: FakeTransaction[],
    keepLost: { client?: string } | undefined = { client: 'aa' },
  ): Promise<Reason | undefined> {
    if (subject === undefined) throw new Error('nothing is submitted')
    const records = [subject, ...along].map((each) => recordOf(each))
    const { lost } = await this.writer.record(records, {
      subjects: [subject.txid],
      ...(keepLost && { keepLost }),
    })
    return lost[0]?.reason
  }

  /** The names that count. */
  names(): string[] {
    return this.index('select name from name where active = 1 order by name').map(({ name }) => name)
  }

  /** The transactions that are facts, by the names that a test has for them. */
  facts(of: Record<string, FakeTransaction>): string[] {
    const inLog = new Set(
      this.log('select key from log where kind = ?', FACT.transaction).map(({ key }) => key.toString('hex')),
    )
    return namesOf(of, inLog)
  }

  /** The same of those that are pending. */
  pending(of: Record<string, FakeTransaction>): string[] {
    return namesOf(of, new Set(this.log('select txid from pending').map(({ txid }) => txid.toString('hex'))))
  }

  /** How many facts there are. */
  count(): number {
    return Number(this.log('select count(*) as count from log')[0]?.count)
  }

  /** What stands in the table of changes, oldest first. */
  changes(): unknown[] {
    return this.index('select keys from changes order by id').map(({ keys }) =>
      keys === '*' ? keys : JSON.parse(keys),
    )
  }

  log(sql: string, ...values: SqlValue[]): ReturnType<Sql['all']> {
    return this.read(storeFiles(this.folder).log, sql, values)
  }

  index(sql: string, ...values: SqlValue[]): ReturnType<Sql['all']> {
    return this.read(storeFiles(this.folder).index, sql, values)
  }

  async close(): Promise<void> {
    await this.writer.close()
    this.closeReaders()
    rmSync(this.folder, { recursive: true })
  }

  private read(filename: string, sql: string, values: SqlValue[]): ReturnType<Sql['all']> {
    let reader = this.readers.find((each) => each.filename === filename)
    if (reader === undefined) {
      reader = new Sql(filename)
      this.readers.push(reader)
    }
    return reader.all(sql, ...values)
  }

  private closeReaders(): void {
    for (const reader of this.readers.splice(0)) reader.close()
  }
}

function namesOf(of: Record<string, FakeTransaction>, txids: ReadonlySet<string>): string[] {
  return Object.keys(of).filter((name) => txids.has(of[name]?.txid ?? ''))
}
