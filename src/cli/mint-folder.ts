import { mkdir, open, readdir, readFile, rename } from 'node:fs/promises'
import { join } from 'node:path'
import { Transaction } from '@bsv/sdk'
import { CommandError } from './command-error.js'

/**
 * The mints that were paid for, each in a file of its own, as the BEEF in which an overlay takes it. A mint stands here
 * before it is sent anywhere, so that what is stopped in between can be sent again; and the change of it pays for the
 * next.
 *
 * `<txid>.pending.beef` may or may not have been sent, `<txid>.beef` is known to an overlay, and `<txid>.lost.beef` spends
 * a node that another mint has spent: its coins are free again.
 */
export class MintFolder {
  private constructor(readonly path: string) {}

  /** @throws CommandError where there can be no such folder. */
  static async at(path: string): Promise<MintFolder> {
    await possible(mkdir(path, { recursive: true }), path)
    return new MintFolder(path)
  }

  /** Keeps a mint on the disk before it is sent. */
  async keep(txid: string, beef: Uint8Array): Promise<void> {
    // Under another name first: a file that is there is whole.
    const part = join(this.path, `${txid}.part`)
    const file = await open(part, 'w')
    try {
      await file.writeFile(beef)
      await file.sync()
    } finally {
      await file.close()
    }
    await rename(part, this.file(txid, 'pending'))
  }

  async settle(txid: string, as: 'known' | 'lost'): Promise<void> {
    await rename(this.file(txid, 'pending'), this.file(txid, as))
  }

  /** Those that may not have been sent, with their ancestors. */
  async pending(): Promise<Transaction[]> {
    return (await this.read()).filter(({ state }) => state === 'pending').map((each) => each.transaction)
  }

  /** All that were not lost. */
  async transactions(): Promise<Transaction[]> {
    return (await this.read()).filter(({ state }) => state !== 'lost').map((each) => each.transaction)
  }

  private file(txid: string, state: State): string {
    return join(this.path, state === 'known' ? `${txid}.beef` : `${txid}.${state}.beef`)
  }

  private async read(): Promise<{ state: State; transaction: Transaction }[]> {
    const found: { state: State; transaction: Transaction }[] = []
    for (const name of (await possible(readdir(this.path), this.path)).sort()) {
      const [, txid, state = 'known'] = /^([0-9a-f]{64})(?:\.(pending|lost))?\.beef$/.exec(name) ?? []
      if (txid === undefined) continue
      const file = join(this.path, name)
      const bytes = await possible(readFile(file), file)
      found.push({ state: state as State, transaction: readMint(bytes, txid, file) })
    }
    return found
  }
}

type State = 'pending' | 'known' | 'lost'

function readMint(bytes: Uint8Array, txid: string, file: string): Transaction {
  try {
    return Transaction.fromBEEF(Array.from(bytes), txid)
  } catch (cause) {
    throw new CommandError(`${file} is not the BEEF of ${txid}`, { cause })
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
