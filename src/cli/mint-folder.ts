import { mkdir, readdir, readFile, rename, rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import type { Transaction } from '@bsv/sdk'
import { nativeHash256 } from '../../backend/src/graph/native-hash.js'
import { BeefError } from '../../backend/src/protocol/beef.js'
import { readBeefTransaction } from '../../backend/src/protocol/beef-transaction.js'
import { syncFolder, writeDurably } from '../server/store/durable-file.js'
import { CommandError } from './command-error.js'

/**
 * What is known of a paid mint:
 *
 * - `pending`: signed and stored; it may or may not have been sent;
 * - `sent`: the network has taken it, and no index knows it yet;
 * - `known`: an index has it;
 * - `lost`: the network refuses it, or another mint has taken its place. Its coins are free again.
 */
export type MintState = 'pending' | 'sent' | 'known' | 'lost'

/** A stored mint, with its merkle path or its ancestors. */
export interface StoredMint {
  txid: string
  state: MintState
  transaction: Transaction
}

/**
 * The mints that were paid for, each in a file of its own, as the BEEF in which an overlay takes it:
 * `<txid>.<state>.beef`, and `<txid>.beef` once an index knows it. Each is on the disk, readable by its owner alone, before
 * it is sent anywhere.
 */
export class MintFolder {
  private constructor(readonly path: string) {}

  /**
   * Opens a folder for this process alone: two that pay with the same coins would get in each other's way.
   *
   * @throws CommandError where there can be no such folder, or another process has it.
   */
  static async at(path: string): Promise<MintFolder> {
    await possible(mkdir(path, { recursive: true, mode: 0o700 }), path)
    const folder = new MintFolder(path)
    await folder.lock()
    return folder
  }

  /** Lets other processes have the folder. */
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
          `${this.path} is in use by the process ${holder}: wait for it, or remove ${this.lockFile} if that is another program`,
          { exit: 'unavailable' },
        )
      // Whoever had it was killed.
      await this.release()
    }
    throw new CommandError(`${this.path} is in use`, { exit: 'unavailable' })
  }

  /** Stores a mint as pending. When this is done, it survives a loss of power. */
  async keep(txid: string, beef: Uint8Array): Promise<void> {
    const [file, part] = [this.file(txid, 'pending'), join(this.path, `${txid}.part`)]
    await possible(writeDurably({ file, part, content: beef, flag: 'w' }), part)
  }

  /** Notes what became of a mint; one that was never stored, or has the state already, is left alone. */
  async settle(txid: string, state: MintState): Promise<void> {
    const stored = (await this.files()).find((each) => each.txid === txid)
    if (stored === undefined || stored.state === state) return
    await rename(this.file(txid, stored.state), this.file(txid, state))
    await syncFolder(this.path)
  }

  async stateOf(txid: string): Promise<MintState | undefined> {
    return (await this.files()).find((each) => each.txid === txid)?.state
  }

  /** All of them, in the order of their txids; files that hold no such mint are named and left alone. */
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

/** Undefined where the file holds something else, or cannot be read. */
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
    // It runs as somebody else.
    return (error as NodeJS.ErrnoException).code === 'EPERM'
  }
}

async function possible<Result>(doing: Promise<Result>, path: string): Promise<Result> {
  try {
    return await doing
  } catch (cause) {
    throw new CommandError(`cannot use ${path}: ${cause instanceof Error ? cause.message : cause}`, {
      cause,
      exit: 'usage',
    })
  }
}
