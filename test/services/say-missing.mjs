import { spawnSync } from 'node:child_process'

/** The servers that tests are run with, by what is said of them. */
const SERVERS = { MariaDB: 'mariadbd' }

const env = { ...process.env, PATH: `${process.env.PATH}:/usr/sbin:/usr/local/sbin` }

/** Says once, before all tests, which of them are skipped because this machine has no server for them. */
export default function sayMissing() {
  for (const [name, program] of Object.entries(SERVERS)) {
    if (spawnSync('sh', ['-c', `command -v ${program}`], { env }).status !== 0)
      process.stderr.write(`What is tested on ${name} is skipped: there is no ${program} here.\n`)
  }
}
