import picocolors from 'picocolors'
import { formatOutpoint } from '../../backend/src/protocol/outpoint.js'
import type { MiningEvent } from '../mining/mine-name.js'
import { escapeControlChars } from '../server/telemetry/public-text.js'
import { type Colors, grouped, ProgressLine, type Stream } from './output.js'

/** Shows the progress of mining: a progress line for the search, and a line for each event. */
export class MiningProgress {
  private readonly line: ProgressLine

  constructor(
    private readonly stream: Stream,
    private readonly colors: Colors = picocolors.createColors(false),
  ) {
    this.line = new ProgressLine(stream, colors)
  }

  update(event: MiningEvent): void {
    if (event.kind === 'searching') {
      if (this.stream.isTTY) this.line.update(() => ({ text: searching(event) }))
    } else if (event.kind === 'started')
      this.say(`mining ${event.name} from ${formatOutpoint(event.node.outpoint)}`)
    else if (event.kind === 'moved')
      this.say(`${event.by} spent the node first: mining ${event.name} from its successor`)
    else if (event.byOther) this.say(byOtherText(event))
    else this.say(minted(event), this.colors.green)
  }

  /** Prints a separate line, which may quote a server. */
  say(text: string, style: (text: string) => string = (plain) => plain): void {
    this.end()
    this.stream.write(`${style(escapeControlChars(text))}\n`)
  }

  /** Erases the line of the search. */
  end(): void {
    this.line.end()
  }
}

/** Says where a name is if its owner has it by another mint than the paid one. */
export function byOtherText({ name, txid }: { name: string; txid: string }): string {
  return `${name} was minted for its owner in ${txid}_2, by a transaction not made here: add that output to the wallet, which does not know it`
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
