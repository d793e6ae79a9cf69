import { live } from "@payhooks/next";
import { receiver } from "../../../receivers.ts";

export const GET = live(receiver("away"));
