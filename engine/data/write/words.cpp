#include "engine/data/write/words.h"

namespace engine {

namespace {

constexpr WriteSubject kSubjects[] = {{"Anna", "she"},
                                      {"Ben", "he"},
                                      {"Carla", "she"},
                                      {"David", "he"},
                                      {"Emma", "she"},
                                      {"Felix", "he"},
                                      {"Grace", "she"},
                                      {"Henry", "he"},
                                      {"Iris", "she"},
                                      {"Jack", "he"},
                                      {"Kate", "she"},
                                      {"Leo", "he"},
                                      {"Mia", "she"},
                                      {"Noah", "he"},
                                      {"Olga", "she"},
                                      {"Paul", "he"},
                                      {"Quinn", "he"},
                                      {"Rosa", "she"},
                                      {"Sam", "he"},
                                      {"Tina", "she"},
                                      {"Uma", "she"},
                                      {"Victor", "he"},
                                      {"Wendy", "she"},
                                      {"Xavier", "he"},
                                      {"Yara", "she"},
                                      {"Zoe", "she"},
                                      {"Alan", "he"},
                                      {"Bella", "she"},
                                      {"Chris", "he"},
                                      {"Dora", "she"},
                                      {"Eric", "he"},
                                      {"Fiona", "she"},
                                      {"George", "he"},
                                      {"Hanna", "she"},
                                      {"Ivan", "he"},
                                      {"Julia", "she"},
                                      {"Kevin", "he"},
                                      {"Lucy", "she"},
                                      {"Mark", "he"},
                                      {"Nina", "she"},
                                      {"the actor", "he"},
                                      {"the author", "she"},
                                      {"the captain", "he"},
                                      {"the coach", "she"},
                                      {"the cook", "he"},
                                      {"the customer", "she"},
                                      {"the director", "he"},
                                      {"the doctor", "she"},
                                      {"the driver", "he"},
                                      {"the farmer", "he"},
                                      {"the guest", "she"},
                                      {"the manager", "he"},
                                      {"the nurse", "she"},
                                      {"the owner", "he"},
                                      {"the painter", "she"},
                                      {"the patient", "he"},
                                      {"the pilot", "she"},
                                      {"the player", "he"},
                                      {"the programmer", "she"},
                                      {"the sailor", "he"},
                                      {"the singer", "she"},
                                      {"the student", "he"},
                                      {"the teacher", "she"},
                                      {"the visitor", "he"},
                                      {"the waiter", "he"},
                                      {"the expert", "she"},
                                      {"the old man", "he"},
                                      {"the old woman", "she"},
                                      {"the small boy", "he"},
                                      {"the small girl", "she"},
                                      {"the children", "they"},
                                      {"the people", "they"},
                                      {"the students", "they"},
                                      {"the visitors", "they"},
                                      {"the two sisters", "they"},
                                      {"the two brothers", "they"},
                                      {"the players", "they"},
                                      {"the sailors", "they"},
                                      {"the farmers", "they"},
                                      {"the old friends", "they"}};
static_assert(std::size(kSubjects) == 80);

constexpr std::string_view kPredicates[kWriteThemes][10] = {
    // a meal
    {"set the table", "made a cup of tea", "ate a piece of cake", "put the plates away",
     "cut the red apples", "had a hot meal", "wanted more bread", "cooked the potatoes",
     "opened a jar of plums", "filled the empty bottle"},
    // a garden
    {"planted a tree", "picked the red flowers", "put seeds into the box", "found an old coin",
     "sat under the tree", "looked at the roses", "moved the big stones", "opened the garden gate",
     "collected the apples", "worked on the long wall"},
    // a journey
    {"bought a ticket", "packed a small bag", "looked at the map", "missed the last train",
     "ran to the station", "waited for the car", "left the town", "asked for the way",
     "crossed the long street", "had a room in the hotel"},
    // the water
    {"looked at the ships", "found a white shell", "worked on the boat", "had a large fish",
     "walked to the harbor", "heard the water", "put the boat on the sand", "saw a small light",
     "pulled the long string", "rested on the stones"},
    // a school
    {"opened the book", "read the last page", "asked a question", "started a long letter",
     "learned ten new words", "looked for the pencil", "counted the pages", "finished the test",
     "put the notes together", "answered the teacher"},
    // music
    {"played a song", "sang for the visitors", "wanted a new tune", "followed the music",
     "started the second song", "stood on the stage", "listened to the concert",
     "held the old drum", "joined the singers", "learned the first part"},
    // a market
    {"sold ten eggs", "bought a warm coat", "counted the coins", "paid for the flowers",
     "asked for the price", "carried a full basket", "looked at the lamps", "wanted two lemons",
     "had no money left", "picked the largest orange"},
    // a house
    {"painted the wall", "opened the window", "closed the door", "moved the chair",
     "put the lamp on the table", "found the lost key", "cleaned the floor", "looked under the bed",
     "turned off the light", "fixed the old clock"},
    // cold days
    {"made a fire", "had a hot drink", "put on a warm coat", "looked at the snow",
     "played with the ice", "stayed in the house", "carried the wood", "wanted the sun back",
     "walked in the wind", "read by the fire"},
    // a forest
    {"followed the small path", "heard a bird", "found a red feather", "looked up at the trees",
     "collected acorns and nuts", "rested on a stone", "crossed the water", "saw a brown animal",
     "lost the way", "walked up the hill"},
    // an office
    {"started the program", "called the manager", "finished the plan", "looked at the numbers",
     "moved the boxes", "read the report", "asked for help", "changed the date",
     "worked until late", "joined the team"},
    // a game
    {"threw the ball", "won the first game", "ran after the kite", "counted to ten",
     "lost the second round", "made a new team", "asked for a break", "picked a card",
     "hid behind the tree", "scored the last point"}};

constexpr std::string_view kAdverbials[] = {"in the morning",
                                            "in the afternoon",
                                            "late at night",
                                            "after the rain",
                                            "before the end of the day",
                                            "without a word",
                                            "for the first time",
                                            "for the second time",
                                            "on a cold day",
                                            "on the way home",
                                            "after a long rest",
                                            "before the others came",
                                            "with great care",
                                            "for a long time",
                                            "at the end of the week",
                                            "in the middle of the day",
                                            "two days later",
                                            "as soon as it was light",
                                            "in front of the visitors",
                                            "with the help of a friend",
                                            "while the others rested",
                                            "when the bell rang",
                                            "on the last day of the year",
                                            "in less than an hour",
                                            "after some time",
                                            "as on every other day",
                                            "with both hands",
                                            "when nobody looked",
                                            "before it was dark",
                                            "on the first day of the month",
                                            "after the last guests had left",
                                            "in spite of the cold",
                                            "at the other end of the town",
                                            "behind the old school",
                                            "next to the station",
                                            "not far from the harbor",
                                            "in the small white house",
                                            "at the start of the year",
                                            "under a clear sky",
                                            "with a smile"};
static_assert(std::size(kAdverbials) == 40);

}  // namespace

std::span<const WriteSubject> write_subjects() {
  return kSubjects;
}

std::span<const std::string_view> write_predicates(int theme) {
  return kPredicates[theme];
}

std::span<const std::string_view> write_adverbials() {
  return kAdverbials;
}

}  // namespace engine
