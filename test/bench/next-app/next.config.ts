import type { NextConfig } from "next";

const config: NextConfig = {
  // The whole of test/ is type-checked by its own task.
  typescript: { ignoreBuildErrors: true },
};
export default config;
