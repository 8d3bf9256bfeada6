import { mkdir, readdir, readFile, rename, rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import type { Transaction } from '@bsv/sdk'
import { nativeHash256 } from '../../backend/src/graph/native-hash.js'
import { BeefError } from '../../backend/src/protocol/beef.js'
import { readBeefTransaction } from '../../backend/src/protocol/beef-transaction.js'
import { messageOf } from '../../backend/src/protocol/coded-error.js'
import { syncFolder, writeDurably } from '../server/store/durable-file.js'
import { CommandError } from './command.js'

/**
 * The state of a paid mint:
 *
 * - `pending`: signed and stored; it may or may not have been sent;
 * - `sent`: the network has accepted it, and no index knows it yet;
 * - `known`: an index has it;
 * - `lost`: the network rejects it, or another mint has replaced it. Its coins may be spent again.
 */
export type MintState = 'pending' | 'sent' | 'known' | 'lost'

/** A stored mint, with its merkle path or its ancestors. */
export interface StoredMint {
  txid: string
  state: MintState
  transaction: Transaction
}

/**
 * The paid mints, each in its own file, as a BEEF for overlays: `<txid>.<state>.beef`, and `<txid>.beef` once an index knows
 * it. Each is on disk, readable by its owner only, before it is sent anywhere.
 */
export class MintFolder {
  private constructor(readonly path: string) {}

  /**
   * Opens a folder exclusively: two processes would spend the same coins.
   *
   * @throws CommandError if the folder cannot be created, or another process has it open.
   */
  static async at(path: string): Promise<MintFolder> {
    await possible(mkdir(path, { recursive: true, mode: 0o700 }), path)
    const folder = new MintFolder(path)
    await folder.lock()
    return folder
  }

  /** Releases the folder for other processes. */
  async release(): Promise<void> {
    await rm(this.lockFile, { force: true })
  }

  private get lockFile(): string {
    return join(this.path, 'lock')
  }

  private async lock(): Promise<void> {
    for (let tries = 2; tries > 0; tries--) {
      try {
        await writeFile(this.lockFile, String(process.pid), { flag: 'wx', mode: 0o600 })
        return
      } catch (cause) {
        if ((cause as NodeJS.ErrnoException).code !== 'EEXIST')
          await possible(Promise.reject(cause), this.path)
      }
      const holder = Number(await readFile(this.lockFile, 'utf8').catch(() => ''))
      if (isRunning(holder))
        throw new CommandError(
          `${this.path} is in use by the process ${holder}: wait for it, or remove ${this.lockFile} if that process is another program`,
          { exit: 'unavailable' },
        )
      // The process that held it was killed.
      await this.release()
    }
    throw new CommandError(`${this.path} is in use: try again`, { exit: 'unavailable' })
  }

  /** Stores a mint as pending. Once this resolves, the mint survives a power failure. */
  async keep(txid: string, beef: Uint8Array): Promise<void> {
    const [file, part] = [this.file(txid, 'pending'), join(this.path, `${txid}.part`)]
    await possible(writeDurably({ file, part, content: beef, flag: 'w' }), part)
  }

  /** Changes the state of a mint, if it is stored and has another state. */
  async setState(txid: string, state: MintState): Promise<void> {
    const stored = (await this.files()).find((each) => each.txid === txid)
    if (stored === undefined || stored.state === state) return
    await rename(this.file(txid, stored.state), this.file(txid, state))
    await syncFolder(this.path)
  }

  async stateOf(txid: string): Promise<MintState | undefined> {
    return (await this.files()).find((each) => each.txid === txid)?.state
  }

  /** All mints, ordered by txid, and the files that cannot be read as one. */
  async read(): Promise<{ mints: StoredMint[]; damaged: string[] }> {
    const mints: StoredMint[] = []
    const damaged: string[] = []
    for (const { txid, state } of await this.files()) {
      const file = this.file(txid, state)
      const transaction = await readMint(file, txid)
      if (transaction === undefined) damaged.push(file)
      else mints.push({ txid, state, transaction })
    }
    return { mints, damaged }
  }

  private file(txid: string, state: MintState): string {
    return join(this.path, state === 'known' ? `${txid}.beef` : `${txid}.${state}.beef`)
  }

  private async files(): Promise<Pick<StoredMint, 'txid' | 'state'>[]> {
    return (await possible(readdir(this.path), this.path)).sort().flatMap((name) => {
      const [, txid, state = 'known'] = /^([0-9a-f]{64})(?:\.(pending|sent|lost))?\.beef$/.exec(name) ?? []
      return txid === undefined ? [] : [{ txid, state: state as MintState }]
    })
  }
}

/** Undefined if the file cannot be read as this mint. */
async function readMint(file: string, txid: string): Promise<Transaction | undefined> {
  try {
    return readBeefTransaction(new Uint8Array(await readFile(file)), { txid, hash: nativeHash256 })
  } catch (error) {
    if (error instanceof BeefError || (error as NodeJS.ErrnoException).syscall !== undefined) return undefined
    throw error
  }
}

function isRunning(pid: number): boolean {
  if (!Number.isInteger(pid) || pid <= 0) return false
  try {
    process.kill(pid, 0)
    return true
  } catch (error) {
    // It runs, as another user.
    return (error as NodeJS.ErrnoException).code === 'EPERM'
  }
}

async function possible<Result>(doing: Promise<Result>, path: string): Promise<Result> {
  try {
    return await doing
  } catch (cause) {
    throw new CommandError(`cannot use ${path}: ${messageOf(cause)}`, {
      cause,
      exit: 'usage',
    })
  }
}
