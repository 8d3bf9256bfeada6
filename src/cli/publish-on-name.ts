import { basename, resolve } from 'node:path'
import { formatOutpoint } from '../../backend/src/protocol/outpoint.js'
import { bindingLock } from '../identity/binding-lock.js'
import { signerOf } from '../identity/move-name.js'
import { DEFAULT_FEE_RATE } from '../payments/key.js'
import { CommandError } from './command.js'
import { changeName, findName, type MoveOptions, ownLock } from './move-name.js'
import { grouped } from './output.js'
import { MAX_WALLET_TRANSACTION } from './pay-services.js'
import { costText, layOutInOneTransaction, noteLeftOut, transactionSize } from './publish.js'
import { countOf, findAt, sizeOf } from './publish-files.js'

export interface PublishOnNameOptions extends Omit<MoveOptions, 'maxFee'> {
  path: string
  /** The highest fee, in satoshis; by default twice the estimate, and {@link SPARE_FEE}. */
  maxFee?: number
}

/** Satoshis beside twice the estimated fee, for the coins and the change of a wallet. */
const SPARE_FEE = 1000

/**
 * Publishes a file or a folder on a name: one transaction spends the name into the output that holds the file or the directory,
 * which is what the name shows from then on, followed by all files. An identity that the name is bound to stays.
 *
 * @throws CommandError; IdentityError; MiningError; PublishError; ResolutionError; ProofError; HeadersError.
 */
export async function runPublishOnName(options: PublishOnNameOptions): Promise<void> {
  const { path, name, output, feeRate = DEFAULT_FEE_RATE } = options
  const { found, leftOut } = await findAt(path, basename(resolve(path)))
  noteLeftOut(leftOut, output)
  const named = await findName(options)
  const { coin, holder, checked } = named
  const lock = await ownLock(named)
  const { outputs, suffix, note } = await layOutInOneTransaction(found, lock)
  const bytes = transactionSize({ inputs: 2, outputs })
  if (holder.wallet !== undefined && bytes > MAX_WALLET_TRANSACTION)
    throw new CommandError(
      `${path} makes a transaction of ${grouped(bytes)} bytes, and the answer of a wallet holds ${grouped(MAX_WALLET_TRANSACTION)}`,
      { exit: 'usage' },
    )
  output.note(costText(found, [{ bytes, count: 1 }], feeRate))
  const maxFee = options.maxFee ?? 2 * Math.ceil((bytes * feeRate) / 1000) + SPARE_FEE
  const [root, ...files] = outputs
  await changeName({ ...options, maxFee }, named, {
    kind: 'publish',
    async move() {
      const signer = signerOf(holder)
      const isBound = checked.identity.state === 'bound' && signer !== undefined
      return {
        lock: isBound ? await bindingLock({ coin, signer }) : lock,
        behind: root?.lockingScript.subarray(lock.length),
        outputs: files.map((file) => ({ ...file, description: `A file of ${name}` })),
      }
    },
    report({ transaction, fee }) {
      const outpoint = formatOutpoint({ txid: transaction.id('hex'), vout: 0 })
      const url = `${options.url.replace(/\/+$/, '')}/content/${formatOutpoint(checked.origin.origin)}:-1${suffix}`
      const published = { bytes: sizeOf(found), files: countOf(found), leftOut }
      output.result({ name, outpoint, url, fee, ...published }, url)
      if (note !== undefined) output.note(note)
    },
  })
}
