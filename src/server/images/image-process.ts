import { writeSync } from 'node:fs'
import { setPriority } from 'node:os'
import { buffer } from 'node:stream/consumers'
import { pathToFileURL } from 'node:url'
import type Sharp from 'sharp'
import type { WantedImage } from '../../gateway/images/images.js'
import type { Outcome } from './images.js'
import { makeImage, RefusedImageError, restrict } from './make-image.js'

// Makes one image from a stranger's bytes and exits: `image-process.js <path of sharp> <the wanted image, as JSON> <CPU milliseconds
// that it may take>`. It reads the bytes from standard input, and writes a line of JSON and the image. A crash affects nothing else.

type Untimed<Each> = Each extends unknown ? Omit<Each, 'milliseconds'> : never

/** Lower than the server's, which answers others meanwhile. */
const PRIORITY = 5

const [path = '', asked = '', allowed = ''] = process.argv.slice(2)
setPriority(PRIORITY)
setInterval(() => {
  if (spent() < Number(allowed)) return
  const message = `this image takes more than ${Number(allowed) / 1000} seconds to resize`
  try {
    writeSync(1, line({ refused: 'BAD_IMAGE', message }))
  } finally {
    // Exiting would wait for the thread that makes the image, even if the server is gone.
    process.kill(process.pid, 'SIGKILL')
  }
}, 100).unref()
const sharp: typeof Sharp = (await import(pathToFileURL(path).href)).default
restrict(sharp)
try {
  const made = await makeImage(sharp, await buffer(process.stdin), JSON.parse(asked) as WantedImage)
  process.stdout.write(line(made.outcome))
  process.stdout.write(made.bytes)
} catch (error) {
  if (!(error instanceof RefusedImageError)) throw error
  process.stdout.write(line({ refused: error.code, message: error.message }))
}

function line(outcome: Untimed<Outcome>): string {
  return `${JSON.stringify({ ...outcome, milliseconds: spent() } satisfies Outcome)}\n`
}

function spent(): number {
  const { user, system } = process.cpuUsage()
  return Math.ceil((user + system) / 1000)
}
