import { readFileSync, writeFileSync } from 'node:fs'

// Preloaded into a process (`--import`): after SIGUSR2, its time of day is off by as many milliseconds as the file says.

const RealDate = Date
const file = process.env.CLOCK_SHIFT
let shift = 0

globalThis.Date = class extends RealDate {
  constructor(...parts) {
    if (parts.length === 0) super(RealDate.now() + shift)
    else super(...parts)
  }

  static now() {
    return RealDate.now() + shift
  }
}

process.on('SIGUSR2', () => {
  shift = Number(readFileSync(file, 'utf8'))
  writeFileSync(`${file}.done`, String(shift))
})
