import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { Sql } from '../../../backend/src/facts/connection.js'
import { LocalLog } from '../../../backend/src/facts/local-log.js'
import { FACT, type NewFact, proofFact, transactionFact } from '../../../backend/src/facts/log.js'
import { makeLog } from '../../../backend/src/facts/log-file.js'
import { admissionRules } from '../../../backend/src/graph/topic-rules.js'
import { Index } from '../../../backend/src/index/apply.js'
import type { Deployment } from '../../../backend/src/protocol/mint.js'
import { recordOf } from '../protocol/block.js'
import type { FakeTransaction } from '../protocol/fake-chain.js'

/** A log and its index in a folder of their own, written without the rules of the door. */
export class FactFiles {
  readonly folder = mkdtempSync(join(tmpdir(), 'minetree-'))
  readonly index = join(this.folder, 'index.db')
  readonly log = join(this.folder, 'log.db')
  private readonly logSql = new Sql(this.log)
  private readonly indexSql = new Sql(this.index)
  private readonly facts: LocalLog
  private readonly derived: Index

  constructor(deployment: Deployment) {
    for (const sql of [this.logSql, this.indexSql])
      sql.exec('pragma journal_mode = wal; pragma synchronous = off')
    makeLog(this.logSql, { base: 1_800_000_000_000 })
    this.facts = new LocalLog(this.logSql)
    const { facts } = this
    const source = {
      transaction: (txid: Uint8Array) => facts.get(FACT.transaction, txid)?.body,
      proofKey: (seq: number) => facts.keyAt(seq)?.key ?? new Uint8Array(),
    }
    this.derived = new Index(this.indexSql, source, {
      rules: admissionRules({ deployment }),
      tracker: 'scripts-only',
    })
    this.apply(facts.after(0, { limit: 10, maxBytes: 1000 }))
  }

  /** Stores a transaction, and its proof if there is a height. */
  add(transaction: FakeTransaction, height?: number): void {
    const { txid, raw, proof } = recordOf(transaction, height)
    this.insert(transactionFact({ txid, raw }), ...(proof ? [proofFact(txid, proof)] : []))
  }

  insert(...facts: NewFact[]): void {
    this.apply(facts.flatMap((fact) => this.facts.insert(fact) ?? []))
  }

  /** Changes a byte of every transaction on disk, or of every chunk of one. */
  damage(change: (bytes: Buffer) => Buffer): void {
    for (const { id, body } of this.logSql.all(
      'select rowid as id, body from log where kind = 1 and body is not null',
    ))
      this.logSql.run('update log set body = ? where rowid = ?', change(body), id)
    for (const { id, bytes } of this.logSql.all('select rowid as id, bytes from chunk'))
      this.logSql.run('update chunk set bytes = ? where rowid = ?', change(bytes), id)
  }

  /** Deletes the chunks of long facts. */
  loseChunks(): void {
    this.logSql.exec('delete from chunk')
  }

  close(): void {
    this.logSql.close()
    this.indexSql.close()
    rmSync(this.folder, { recursive: true })
  }

  private apply(facts: Parameters<Index['apply']>[0]): void {
    this.indexSql.exec('begin')
    this.derived.apply(facts)
    this.derived.flush()
    this.indexSql.exec('commit')
  }
}
