import { SatoshisPerKilobyte } from '@bsv/sdk'
import { readBeefTransaction } from '../../backend/src/protocol/beef-transaction.js'
import type { Transaction, WalletInterface } from '../../backend/src/protocol/sdk-types.js'
import { type Draft, type DraftInput, type DraftOutput, type Paid, startTransaction } from './draft.js'
import { DEFAULT_FEE_RATE } from './key.js'
import { bytesOf, type KeyWallet, NAME_BASKET, nameKey, walletLock, walletUnlock } from './wallet-keys.js'

/** The key id of the coins; no name has a space. */
const KEY_ID = 'mint coins'
/** Tells the coins from the names in the basket. */
const TAG = 'mint coin'
/** The most coins that one mint sets aside: its unlocking script repeats all outputs. */
const MOST_COINS = 24
/** The factor by which a coin exceeds the estimate, as wallets have their own fee rates: the rest is change. */
const SPARE = 1.3
/** Bytes for the coin, and for the inputs and the change that a wallet adds. */
const OF_WALLET = 800

export type PurseWallet = KeyWallet & Pick<WalletInterface, 'listOutputs'>

/** The inputs and outputs that {@link Purse} adds to a mint. */
interface Funding {
  paidBy: DraftInput[]
  setAside: DraftOutput[]
}

/**
 * The coins that pay for the later mints of a name: the first mint sets one aside for each. A wallet asks its user about a
 * transaction whose own inputs do not pay for its outputs and its fee (wallet-toolbox, `computeNetSpend`), so it asks once for a
 * name and not once for each character. The wallet keeps the coins beside its names: those of a stopped run pay in the next one.
 */
export class Purse {
  private coins: DraftInput[] | undefined

  constructor(
    private readonly wallet: PurseWallet,
    /** The whole name. */
    private readonly name: string,
  ) {}

  /**
   * The funding of the mint of a prefix: a coin; or nothing, and then coins to set aside for the later mints, so that the wallet
   * pays for all.
   */
  async fundingOf(mint: Draft, prefix: string): Promise<Funding> {
    this.coins ??= await this.earlier()
    const coin = this.coins.pop()
    const later = Math.min(MOST_COINS, this.name.length - prefix.length)
    if (coin !== undefined || later === 0) return { paidBy: coin === undefined ? [] : [coin], setAside: [] }
    const output: DraftOutput = {
      satoshis: await costOf(mint),
      lockingScript: await walletLock(this.wallet, KEY_ID),
      description: `For a later mint of ${this.name}`,
      basket: { name: NAME_BASKET, customInstructions: JSON.stringify(nameKey(KEY_ID)), tags: [TAG] },
    }
    return { paidBy: [], setAside: new Array<DraftOutput>(later).fill(output) }
  }

  /** Takes the coins that a mint has set aside, after its own outputs. */
  async add({ transaction }: Paid, { setAside }: Funding, first: number): Promise<void> {
    const places = setAside.map((_, index) => ({ source: transaction, vout: first + index }))
    this.coins?.push(...(await this.coinsAt(places)))
  }

  private async earlier(): Promise<DraftInput[]> {
    const { BEEF, outputs } = await this.wallet.listOutputs({
      ...{ basket: NAME_BASKET, tags: [TAG], include: 'entire transactions', limit: MOST_COINS },
    })
    const beef = bytesOf(BEEF ?? [])
    /** By txid: a mint sets several coins aside. */
    const sources = new Map<string, Transaction>()
    const places = outputs
      .filter(({ spendable }) => spendable)
      .map(({ outpoint }) => {
        const [txid = '', vout] = outpoint.split('.')
        const source = sources.get(txid) ?? readBeefTransaction(beef, { txid })
        sources.set(txid, source)
        return { source, vout: Number(vout) }
      })
    return await this.coinsAt(places)
  }

  private async coinsAt(places: readonly Pick<DraftInput, 'source' | 'vout'>[]): Promise<DraftInput[]> {
    if (places.length === 0) return []
    const unlock = await walletUnlock(this.wallet, KEY_ID)
    return places.map((place) => ({
      ...place,
      unlock,
      description: `A coin for the mints of ${this.name}`,
    }))
  }
}

/** The estimated cost of a later mint for its payer, in satoshis, based on a similar mint: rather too high than too low. */
async function costOf({ inputs, outputs, maxFee }: Draft): Promise<number> {
  const alone = await new SatoshisPerKilobyte(DEFAULT_FEE_RATE).computeFee(
    startTransaction({ inputs, outputs }),
  )
  const more = inputs.reduce((bytes, { room = 0 }) => bytes + room, OF_WALLET)
  const fee = Math.min(maxFee, Math.ceil(SPARE * (alone + (more * DEFAULT_FEE_RATE) / 1000)))
  const spent = inputs.reduce((sum, { source, vout }) => sum + (source.outputs[vout]?.satoshis ?? 0), 0)
  return fee + outputs.reduce((sum, { satoshis }) => sum + satoshis, 0) - spent
}
