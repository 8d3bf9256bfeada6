import picocolors from 'picocolors'
import { formatOutpoint } from '../../backend/src/protocol/outpoint.js'
import type { MiningEvent } from '../mining/mine-name.js'
import { escapeControlChars } from '../server/telemetry/escape-control-chars.js'
import type { Colors, Stream } from './output.js'
import { grouped } from './progress-line.js'

/** Tells how mining goes on: the search in one line that changes, where a person looks on, and what happened below it. */
export class MiningProgress {
  private shown = false

  constructor(
    private readonly stream: Stream,
    private readonly colors: Colors = picocolors.createColors(false),
  ) {}

  tell(event: MiningEvent): void {
    if (event.kind === 'searching') this.show(searching(event))
    else if (event.kind === 'started')
      this.say(`mining ${event.name} from ${formatOutpoint(event.node.outpoint)}`)
    else if (event.kind === 'moved')
      this.say(`${event.by} was minted from the node first: mining ${event.name} from the node that it left`)
    else if (event.kind === 'minted' && event.byOther) this.say(byOtherText(event))
    else if (event.kind === 'minted') this.say(minted(event), this.colors.green)
  }

  /** Says something in a line of its own; a server may have a say in it. */
  say(text: string, style: (text: string) => string = (plain) => plain): void {
    this.end()
    this.stream.write(`${style(escapeControlChars(text))}\n`)
  }

  /** Leaves no half line behind. */
  end(): void {
    if (this.shown) this.stream.write('\r\x1b[K')
    this.shown = false
  }

  private show(text: string): void {
    if (this.stream.isTTY !== true) return
    // A line that wraps could not be written over.
    const room = (this.stream.columns ?? 80) - 1
    this.stream.write(`\r\x1b[K${this.colors.dim(escapeControlChars(text).slice(0, room))}`)
    this.shown = true
  }
}

/** Says where a name is that its owner has by another mint than the one that was paid for. */
export function byOtherText({ name, txid }: { name: string; txid: string }): string {
  return `${name} has its owner in ${txid}_2, by another transaction than the one made here: a wallet does not know that output`
}

function minted({ name, hashes, fee }: Extract<MiningEvent, { kind: 'minted' }>): string {
  const paid = fee === 0 ? '' : `, for a fee of ${grouped(fee)} satoshis`
  return `mined ${name} after ${grouped(hashes)} hashes${paid}`
}

function searching({ name, progress }: Extract<MiningEvent, { kind: 'searching' }>): string {
  const { hashes, hashesPerSecond, expectedSeconds, luck } = progress
  const rate = (hashesPerSecond / 1e6).toFixed(1)
  return `${name}: ${grouped(hashes)} hashes, ${rate} million a second; one in ${expectedSeconds.toFixed(1)} s on average, ${(luck * 100).toFixed(0)} % would have it by now`
}
