import { cpSync, mkdtempSync, readdirSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { Sql, type SqlValue } from '../../backend/src/facts/connection.js'
import { storeFiles } from '../../backend/src/writer/local-writer.js'
import { Random } from '../support/random.js'

/** The files of a store as a kill leaves them, right before a statement. */
export interface Snapshot {
  folder: string
  before: string
  /** How many commits of the log there were by then. */
  commits: number
}

const WRITES = /^\s*(insert|update|delete|replace|create|drop)\b/i

/**
 * Copies the files of a store before some of the statements of its writer: what has reached a file by then is what is there when the
 * process is killed, and what SQLite keeps in memory is not.
 */
export class Snapshots {
  commits = 0
  private taken: Snapshot[] = []
  private readonly random: Random
  private readonly restore: () => void

  /** @param options.writes Before which share of the statements that write the files are copied; `commits`, the same of commits. */
  constructor(
    private readonly folderOf: () => string,
    private readonly options: { seed: number; writes: number; commits: number },
  ) {
    this.random = new Random(options.seed)
    const { run, exec } = Sql.prototype
    // Readers, of which we want nothing, end what they read by `run`.
    const before = (sql: Sql, statement: string, isCommit = false): void =>
      this.beforeStatement(sql, statement, isCommit)
    Sql.prototype.run = function (this: Sql, statement: string, ...values: SqlValue[]) {
      before(this, statement)
      return run.call(this, statement, ...values)
    }
    Sql.prototype.exec = function (this: Sql, statement: string) {
      before(this, statement, statement === 'commit')
      return exec.call(this, statement)
    }
    this.restore = () => Object.assign(Sql.prototype, { run, exec })
  }

  /** What was copied since this was last called. */
  take(): Snapshot[] {
    const { taken } = this
    this.taken = []
    this.commits = 0
    return taken
  }

  close(): void {
    this.restore()
  }

  private beforeStatement({ filename, inTransaction }: Sql, statement: string, isCommit: boolean): void {
    const folder = this.folderOf()
    if (folder === '') return
    const { log, index } = storeFiles(folder)
    if (filename !== log && filename !== index) return
    const isWrite = inTransaction && WRITES.test(statement)
    if (!isCommit && !isWrite) return
    const share = isCommit ? this.options.commits : this.options.writes
    if (this.random.next() < share) this.copy(folder, `${filename.slice(folder.length + 1)}: ${statement}`)
    if (isCommit && filename === log) this.commits++
  }

  private copy(from: string, before: string): void {
    const folder = mkdtempSync(join(tmpdir(), 'minetree-killed-'))
    // Another process would not find the shared memory of this one.
    for (const name of readdirSync(from))
      if (!name.endsWith('-shm')) cpSync(join(from, name), join(folder, name))
    this.taken.push({ folder, before, commits: this.commits })
  }
}
